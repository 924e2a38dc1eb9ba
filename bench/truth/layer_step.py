# SPDX-License-Identifier: Apache-2.0
"""One row of Liger-Kernel's benchmarks, of the plain layer that its kernels are
compared with: the peak of one forward pass, backward pass or both."""
import argparse

import torch
import torch.nn.functional as F
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaMLP

import layers
from peaks import print_peaks


def normal(*shape, dtype, gradient=False):
    return torch.randn(*shape, dtype=dtype, device="cuda",
                       requires_grad=gradient)


def make_mlp(args):
    """(batch, length, width) through a gated MLP of Llama."""
    batch, length, width, inner = args.shape
    config = LlamaConfig(hidden_size=width, intermediate_size=inner,
                         hidden_act=args.act)
    layer = LlamaMLP(config).to("cuda").to(args.dtype)
    return layer, normal(batch, length, width, dtype=args.dtype, gradient=True)


class Twin(torch.nn.Module):
    """A layer, and another like it for Liger's, which is not used."""

    def __init__(self, make):
        super().__init__()
        self.used, self.spare = make(), make()

    def forward(self, *inputs):
        return self.used(*inputs)


def make_norm(args):
    rows, width = args.shape
    layer = Twin(lambda: torch.nn.LayerNorm(width)).to("cuda")
    return layer, normal(rows, width, dtype=args.dtype, gradient=True)


def make_loss(args):
    """The last projection and cross entropy."""
    tokens, width, classes = args.shape
    head = Twin(lambda: torch.nn.Linear(width, classes, bias=False,
                                        dtype=args.dtype)).to("cuda")
    labels = torch.randint(classes, (tokens,), device="cuda")

    def loss(x):
        logits = head(x)
        return F.cross_entropy(logits, labels)

    return loss, normal(tokens, width, dtype=args.dtype, gradient=True)


def make_sparsemax(args):
    return layers.sparsemax, normal(*args.shape, dtype=args.dtype,
                                    gradient=True)


def make_multi_token(args, sparse=False):
    batch, channels, size, length = args.shape
    layer = Twin(lambda: layers.MultiToken(channels, size, sparse,
                                           args.dtype)).to("cuda")
    return layer, normal(batch, channels, length, length, dtype=args.dtype,
                         gradient=True)


def make_sparse_multi_token(args):
    return make_multi_token(args, sparse=True)


def make_neighbourhood(args):
    batch, width, heads, length = args.shape
    layer = Twin(lambda: layers.Neighbourhood(width, heads)).to("cuda")
    return layer.to(args.dtype), normal(batch, length, width,
                                        dtype=args.dtype, gradient=True)


def make_jsd(args):
    x = normal(*args.shape, dtype=args.dtype, gradient=True)
    x = x.log_softmax(dim=-1)
    target = normal(*args.shape, dtype=args.dtype).log_softmax(dim=-1)
    return lambda x: layers.jensen_shannon(x, target), x


def make_grpo(args):
    batch, length, width, classes = args.shape
    layer = Twin(lambda: layers.PolicyLoss(width, classes,
                                           args.dtype)).to("cuda")
    x = normal(batch, length, width, dtype=args.dtype, gradient=True)
    rest = (normal(batch, length, width, dtype=args.dtype),
            torch.randint(classes, (batch, length), device="cuda"),
            torch.ones(batch, length, device="cuda"),
            torch.randn(batch, device="cuda"))
    return lambda x: layer(x, *rest), x


LAYERS = {
    "mlp": make_mlp, "norm": make_norm, "loss": make_loss,
    "sparsemax": make_sparsemax, "multi_token": make_multi_token,
    "sparse_multi_token": make_sparse_multi_token,
    "neighbourhood": make_neighbourhood, "jsd": make_jsd, "grpo": make_grpo,
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layer", choices=sorted(LAYERS))
    parser.add_argument("mode", choices=["forward", "backward", "full",
                                         "given", "loss"],
                        help="given: full, of a gradient that is there before")
    parser.add_argument("--shape", type=int, nargs="+", required=True)
    parser.add_argument("--act", default="silu")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    args.dtype = getattr(torch, args.dtype)
    return args


def make_step(layer, mode, x):
    """What is measured, again and again. A backward pass was before, in the
    same process: its thread has a workspace of cuBLAS too."""
    if mode == "forward":
        layer(x).sum().backward()
        x.grad = None
        layer.zero_grad()
        return lambda: layer(x)
    if mode == "backward":
        gradient, y = torch.randn_like(x), layer(x)
        return lambda: y.backward(gradient, retain_graph=True)
    if mode == "loss":
        return lambda: layer(x).backward()
    given = torch.randn_like(x) if mode == "given" else None

    def full():
        y = layer(x)
        y.backward(torch.randn_like(y) if given is None else given,
                   retain_graph=True)

    return full


def main():
    args = parse()
    layer, x = LAYERS[args.layer](args)
    step = make_step(layer, args.mode, x)
    for _ in range(args.steps):
        torch.cuda.reset_peak_memory_stats()
        step()
    print_peaks()


if __name__ == "__main__":
    main()
