# SPDX-License-Identifier: Apache-2.0
"""One rank of Llama-3-405B in four dimensions of parallelism: tensor (with
sequence), context, pipeline (1F1B) and FSDP2 over the rest. bench/world starts it.

As its authors describe their training: a batch of 16 million tokens, 16
micro-batches; with context parallelism keys and values are gathered, and a rank
has two pieces of the sequence, one from each end.
"""
import argparse
import contextlib
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed._functional_collectives import (
    all_gather_tensor_autograd)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
    loss_parallel, parallelize_module)
from torch.nn.attention.bias import causal_lower_right
from torch.utils.checkpoint import checkpoint

SIZES = {  # width, layers, heads, key-value heads, hidden, vocabulary
    "tiny": (1024, 14, 16, 8, 2048, 4096),
    "405b": (16384, 126, 128, 8, 53248, 128256),
}


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads, context):
        super().__init__()
        self.size, self.context = width // heads, context
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v = nn.Linear(width, kv_heads * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def attend(self, q, k, v):
        if self.context.size() == 1:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                  enable_gqa=True)
        count, index = 2 * self.context.size(), self.context.get_local_rank()
        k, v = (all_gather_tensor_autograd(x.contiguous(), 2, self.context)
                for x in (k, v))
        piece, outs = q.shape[2] // 2, []
        for n, part in zip((index, count - 1 - index), q.chunk(2, 2)):
            end = (n + 1) * piece
            outs.append(F.scaled_dot_product_attention(
                part, k[:, :, :end], v[:, :, :end], enable_gqa=True,
                attn_mask=causal_lower_right(piece, end)))
        return torch.cat(outs, 2)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (p(x).view(batch, length, -1, self.size).transpose(1, 2)
                   for p in (self.q, self.k, self.v))
        return self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden, context):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, heads, kv_heads, context)
        self.mlp = MLP(width, hidden)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Stage(nn.Module):
    """Layers FIRST to LAST of the model, with what stands before and after."""

    def __init__(self, size, first, last, context):
        super().__init__()
        width, layers, heads, kv_heads, hidden, vocabulary = SIZES[size]
        self.embedding = nn.Embedding(vocabulary, width) if first == 0 else None
        self.layers = nn.ModuleList(
            Block(width, heads, kv_heads, hidden, context)
            for _ in range(first, last))
        self.norm = self.head = None
        if last == layers:
            self.norm = nn.RMSNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        if self.embedding:
            x = self.embedding(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(self.norm(x)) if self.head else x


def apply_tensor_parallel(stage, mesh):
    gather = {"input_layouts": Shard(1), "desired_input_layouts": Replicate()}
    scatter = RowwiseParallel(output_layouts=Shard(1))
    for layer in stage.layers:
        parallelize_module(layer, mesh, {
            "norm1": SequenceParallel(), "norm2": SequenceParallel(),
            "attention": PrepareModuleInput(**gather),
            "attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(),
            "attention.v": ColwiseParallel(), "attention.out": scatter,
            "mlp": PrepareModuleInput(**gather), "mlp.gate": ColwiseParallel(),
            "mlp.up": ColwiseParallel(), "mlp.down": scatter})
    if stage.embedding:
        parallelize_module(stage, mesh, {"embedding": RowwiseParallel(
            input_layouts=Replicate(), output_layouts=Shard(1))})
    if stage.head:
        parallelize_module(stage, mesh, {
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1),
                                    output_layouts=Shard(-1),
                                    use_local_output=False)})


def apply_fsdp(stage, mesh):
    options = {"mesh": mesh, "reshard_after_forward": False,
               "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                 reduce_dtype=torch.float32)}
    for layer in stage.layers:
        fully_shard(layer, **options)
    fully_shard(stage, **options)


def stage_layers(layers, stages, index):
    """Stage INDEX of STAGES: the first and the last have the fewest."""
    counts = [layers // stages] * stages
    for extra in range(layers % stages):
        counts[1 + extra % (stages - 2)] += 1
    first = sum(counts[:index])
    return first, first + counts[index]


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=SIZES, default="405b")
    parser.add_argument("--tp", type=int, default=8)
    parser.add_argument("--cp", type=int, default=1)
    parser.add_argument("--pp", type=int, default=16)
    parser.add_argument("--length", type=int, default=8192,
                        help="tokens of a micro-batch on a rank")
    parser.add_argument("--micro-batches", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1)
    return parser.parse_args()


def build(options, mesh):
    index = mesh["pp"].get_local_rank()
    first, last = stage_layers(SIZES[options.size][1], options.pp, index)
    with torch.device("meta"):
        stage = Stage(options.size, first, last, mesh["cp"])
    apply_tensor_parallel(stage, mesh["tp"])
    apply_fsdp(stage, mesh["dp", "cp"]._flatten("shard"))
    stage.to_empty(device="cuda")
    return stage, PipelineStage(stage, index, options.pp, torch.device("cuda"),
                                group=mesh["pp"].get_group())


def loss_function(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def main():
    options = parse()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    data = dist.get_world_size() // (options.tp * options.cp * options.pp)
    mesh = init_device_mesh(
        "cuda", (options.pp, data, options.cp, options.tp),
        mesh_dim_names=("pp", "dp", "cp", "tp"))
    stage, place = build(options, mesh)
    schedule = Schedule1F1B(place, options.micro_batches, loss_function)
    optimizer = torch.optim.AdamW(stage.parameters(), lr=1e-4, fused=True)
    shape = options.micro_batches, options.length
    for step in range(options.steps):
        began = time.time()
        tokens = torch.randint(SIZES[options.size][5], shape, device="cuda")
        with loss_parallel() if stage.head else contextlib.nullcontext():
            schedule.step(*([tokens] if stage.embedding else []),
                          **({"target": tokens} if stage.head else {}))
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        if dist.get_rank() == 0:
            print(f"step {step}: {time.time() - began:.2f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
