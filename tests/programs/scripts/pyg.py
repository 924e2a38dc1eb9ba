# SPDX-License-Identifier: Apache-2.0
"""torch-geometric: GCN, GAT and TopKPooling over batches, sparse tensors."""
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, TopKPooling, global_mean_pool
from torch_geometric.utils import dropout_edge


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.pool = GCNConv(16, 64), TopKPooling(64, ratio=0.5)
        self.second = GATConv(64, 32, heads=4, concat=False)
        self.out = torch.nn.Linear(32, 4)

    def forward(self, data):
        edges, _ = dropout_edge(data.edge_index, 0.2, training=self.training)
        x = self.first(data.x, edges).relu()
        x, edges, _, batch, _, _ = self.pool(x, edges, batch=data.batch)
        assert x.size(0) == data.num_nodes // 2, x.shape
        return self.out(global_mean_pool(self.second(x, edges), batch))


graphs = [Data(torch.randn(60, 16), torch.randint(0, 60, (2, 240)),
               y=torch.randint(0, 4, (1,))) for _ in range(64)]
model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
for batch in DataLoader(graphs, batch_size=16, shuffle=True):
    batch = batch.cuda()
    torch.nn.functional.cross_entropy(model(batch), batch.y).backward()
    optimizer.step()
    optimizer.zero_grad()
where = torch.randint(0, 500, (2, 200), device="cuda")
known = torch.sparse_coo_tensor(where, torch.ones(200, device="cuda"),
                                (500, 500)).coalesce()
wanted = where.unique(dim=1).size(1)
assert known._nnz() == wanted == len(set(zip(*where.tolist()))), known
print("trained, and", wanted, "different edges")
