# SPDX-License-Identifier: Apache-2.0
"""torch-geometric's convolutions in a network of two layers, its models and
poolings, on a random graph."""
import inspect

import torch

from torch_geometric import nn
from . import common

NODES, EDGES, WIDTH = 100, 400, 16
RELATION = ("n", "to", "n")  # of graphs with kinds of nodes


def mlp(width_in, width_out):
    return torch.nn.Sequential(torch.nn.Linear(width_in, width_out),
                               torch.nn.ReLU(),
                               torch.nn.Linear(width_out, width_out))


class Variational(torch.nn.Module):
    """An encoder of a mean and a deviation."""

    def __init__(self):
        super().__init__()
        self.mean = nn.GCNConv(WIDTH, WIDTH)
        self.deviation = nn.GCNConv(WIDTH, WIDTH)

    def forward(self, x, edge_index):
        return self.mean(x, edge_index), self.deviation(x, edge_index)


# Arguments of constructors that have no default.
ARGUMENTS = {
    "in_channels": WIDTH, "out_channels": WIDTH, "channels": WIDTH,
    "hidden_channels": WIDTH, "num_layers": 2, "heads": 2, "K": 2,
    "num_relations": 3, "edge_dim": 4, "dim": 1, "kernel_size": 3,
    "aggregators": ["mean", "max", "std"], "num_timesteps": 2,
    "scalers": ["identity", "amplification"], "deg": torch.ones(10).long(),
    "num_nodes": NODES, "act": torch.nn.ReLU(), "beta": 0.5, "alpha": 0.1,
    "dropout": 0.1, "num_segments": 2, "in_node_channels": WIDTH,
    "first_aggr": True, "filter_size": 2, "num_node_types": 2,
    "num_edge_types": 3, "edge_type_emb_dim": 4, "edge_attr_emb_dim": 4,
    "mode": "cat", "q": 0.5, "processing_steps": 2, "k": 8, "patch_size": 4,
    "aggrs": ["mean", "max"], "num_clusters": 4, "num_classes": 4,
    "embedding_dim": WIDTH, "depth": 2, "aggr": "mean",
    "scaler": "amplification", "metadata": (["n"], [RELATION]),
    "types": ["n"],
}
SPECIAL = {
    "GINConv": lambda kind: kind(mlp(WIDTH, WIDTH)),
    "GINEConv": lambda kind: kind(mlp(WIDTH, WIDTH), edge_dim=4),
    "NNConv": lambda kind: kind(WIDTH, WIDTH, mlp(4, WIDTH * WIDTH)),
    "ECConv": lambda kind: kind(WIDTH, WIDTH, mlp(4, WIDTH * WIDTH)),
    "EdgeConv": lambda kind: kind(mlp(2 * WIDTH, WIDTH)),
    "CFConv": lambda kind: kind(WIDTH, WIDTH, 8, mlp(4, 8), 5.0),
    "GPSConv": lambda kind: kind(WIDTH, nn.GCNConv(WIDTH, WIDTH), heads=4),
    "DirGNNConv": lambda kind: kind(nn.SAGEConv(WIDTH, WIDTH)),
    "PointGNNConv": lambda kind: kind(mlp(WIDTH, 3), mlp(WIDTH + 3, WIDTH),
                                      mlp(WIDTH, WIDTH)),
    "MLP": lambda kind: kind([WIDTH, 32, WIDTH]),
    "PNA": lambda kind: kind(WIDTH, WIDTH, 2, aggregators=["mean", "max"],
                             scalers=["identity"], deg=ARGUMENTS["deg"]),
    "GAE": lambda kind: kind(nn.GCNConv(WIDTH, WIDTH)),
    "DeepGraphInfomax": lambda kind: kind(
        WIDTH, nn.GCNConv(WIDTH, WIDTH), lambda z, *_: z.mean(0),
        lambda x, edges: (x.flip(0), edges)),
    "GMMConv": lambda kind: kind(WIDTH, WIDTH, 4, 3),
    "AttentionalAggregation": lambda kind: kind(mlp(WIDTH, 1)),
    "EquilibriumAggregation": lambda kind: kind(WIDTH, WIDTH, [32]),
    "MLPAggregation": lambda kind: kind(
        WIDTH, WIDTH, 25, hidden_channels=32, num_layers=2,
        norm=None),
    "VGAE": lambda kind: kind(Variational()),
    "ARGA": lambda kind: kind(nn.GCNConv(WIDTH, WIDTH), mlp(WIDTH, 1)),
    "ARGVA": lambda kind: kind(Variational(), mlp(WIDTH, 1)),
    "GroupAddRev": lambda kind: kind(nn.GCNConv(WIDTH // 2, WIDTH // 2),
                                     num_groups=2),
    "DeepGCNLayer": lambda kind: kind(
        nn.GCNConv(WIDTH, WIDTH), torch.nn.LayerNorm(WIDTH),
        torch.nn.ReLU()),
    "HeteroConv": lambda kind: kind({RELATION: nn.GCNConv(WIDTH, WIDTH)}),
}
# What forward() gets, where its signature does not say it.
GIVEN = {
    **dict.fromkeys(("RGCNConv", "FastRGCNConv", "RGATConv"),
                    ["x", "edge_index", "edge_type"]),
    "DNAConv": ["x_layers", "edge_index"], "DirGNNConv": ["x", "edge_index"],
    "GMMConv": ["x", "edge_index", "edge_attr"],
    **dict.fromkeys(("GAE", "DeepGraphInfomax", "PNA"), ["x", "edge_index"]),
    "HEATConv": ["x", "edge_index", "node_type", "edge_type", "edge_attr"],
    "MLP": ["x"], "HeteroConv": ["x_dict", "edge_index_dict"],
    **dict.fromkeys(("ARGA", "ARGVA", "VGAE", "GroupAddRev", "DeepGCNLayer",
                     "PMLP"), ["x", "edge_index"]),
}


def construct(kind):
    if kind.__name__ in SPECIAL:
        return SPECIAL[kind.__name__](kind)
    needed = {name: ARGUMENTS[name] for name, p in
              inspect.signature(kind.__init__).parameters.items()
              if name in ARGUMENTS and p.default is inspect.Parameter.empty}
    return kind(**needed)


class Network(torch.nn.Module):
    def __init__(self, kind, given):
        super().__init__()
        self.before = torch.nn.Linear(WIDTH, WIDTH)
        self.layer = construct(kind)
        self.given = given

    def forward(self, x, edge_index, batch):
        x_0 = self.before(x)
        known = {
            "x": x_0, "x_0": x_0, "z": x_0, "xs": [x_0, x_0],
            "x_layers": torch.stack([x_0, x_0, x_0], 1),
            "edge_index": edge_index, "batch": batch,
            "edge_attr": torch.ones(edge_index.size(1), 4, device=x.device),
            "edge_weight": torch.ones(edge_index.size(1), device=x.device),
            "edge_type": edge_index[0] % 3, "node_type": batch % 2,
            "y": batch, "mask": batch < 2, "x_dict": {"n": x_0},
            "edge_index_dict": {RELATION: edge_index},
            "xs_dict": {"n": [x_0, x_0]},
            "pos": x[:, :3], "normal": x[:, 3:6], "index": batch, "ptr": None,
            **dict.fromkeys(("pos_edge_index", "neg_edge_index",
                             "hyperedge_index"), edge_index),
        }
        return self.layer(*[known[name] for name in self.given])


def arguments(kind):
    """The arguments of forward() that have no default and are not optional."""
    if kind.__name__ in GIVEN:
        return GIVEN[kind.__name__]
    forward = inspect.signature(kind.forward).parameters
    names = [name for name, p in forward.items()
             if name != "self" and p.default is inspect.Parameter.empty and
             p.kind is p.POSITIONAL_OR_KEYWORD]
    if "edge_attr" in forward and kind.__name__ in SPECIAL:
        names.append("edge_attr")
    return names


def build(config):
    kind = getattr(nn, config["model"])
    where = common.device(config)
    model = Network(kind, arguments(kind)).to(where)

    def inputs():
        return [torch.randn(NODES, WIDTH, device=where),
                torch.randint(0, NODES, (2, EDGES), device=where),
                torch.arange(NODES, device=where) // 25], {}
    return model, inputs


def families():
    for module in (nn.conv, nn.models, nn.pool, nn.aggr):
        for name in module.__all__:
            kind = getattr(nn, name, None)
            if inspect.isclass(kind) and issubclass(kind, torch.nn.Module):
                yield name
