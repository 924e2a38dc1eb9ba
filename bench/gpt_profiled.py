# SPDX-License-Identifier: Apache-2.0
"""A step of a GPT with tensor parallelism, a pipeline and data parallelism, and its
profile (doc/evidence/traces.md has what its replays were compared with).

    memsim run --memory 640GiB --nnodes 1 --nproc-per-node 2 --ranks 0 -- \
        python bench/gpt_profiled.py --layers 48 --width 6144 --tp 2 --profile FILE

Rank r has the tensor part r % tp and the stage r / tp % pp. A stage is one of
torch.distributed.pipelining (1F1B); replicas are DistributedDataParallel's. Without
--pp 2 and more a step is a forward and a backward of each micro-batch. With --fsdp
replicas are fully_shard's, of each layer and then of the model.
"""
import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule


class Copy(torch.autograd.Function):
    """Into a tensor-parallel region: gradients are summed."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class Sum(torch.autograd.Function):
    """Out of a tensor-parallel region."""

    @staticmethod
    def forward(_, x, group):
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(_, gradient):
        return gradient, None


class Block(nn.Module):
    def __init__(self, o, group):
        super().__init__()
        self.group, self.heads = group, o.heads // o.tp
        self.norm1, self.norm2 = nn.LayerNorm(o.width), nn.LayerNorm(o.width)
        part = o.width // o.tp
        self.qkv, self.out = nn.Linear(o.width, 3 * part), nn.Linear(part, o.width)
        self.up = nn.Linear(o.width, 4 * part)
        self.down = nn.Linear(4 * part, o.width)

    def enter(self, x):
        return Copy.apply(x, self.group) if self.group else x

    def leave(self, x):
        return Sum.apply(x, self.group) if self.group else x

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2)
                   for p in self.qkv(self.enter(self.norm1(x))).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, length, -1)
        x = x + self.leave(self.out(y))
        y = self.down(F.gelu(self.up(self.enter(self.norm2(x)))))
        return x + self.leave(y)


class Stage(nn.Module):
    def __init__(self, o, group, first, last):
        super().__init__()
        self.words = nn.Embedding(o.vocabulary, o.width) if not first else None
        self.layers = nn.ModuleList(Block(o, group) for _ in range(first, last))
        self.head = None
        if last == o.layers:
            self.norm = nn.LayerNorm(o.width)
            self.head = nn.Linear(o.width, o.vocabulary, bias=False)

    def forward(self, x):
        x = self.words(x) if self.words else x
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)) if self.head else x


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def options():
    parser = argparse.ArgumentParser()
    for name, value in (("layers", 48), ("width", 6144), ("heads", 48), ("tp", 2),
                        ("pp", 1), ("dp", 1), ("micro-batches", 8), ("batch", 1),
                        ("length", 2048), ("vocabulary", 8192), ("steps", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--profile")
    parser.add_argument("--fsdp", action="store_true")
    return parser.parse_args()


def steps_of(o, stage, mesh, device):
    """A function that makes a step."""
    tokens = torch.randint(o.vocabulary, (2, o.micro_batches * o.batch, o.length),
                           device=device)
    model = stage
    if o.fsdp:
        for part in (*stage.layers, stage):
            fully_shard(part, mesh=mesh["dp"])
    elif o.dp > 1:
        model = DistributedDataParallel(stage, process_group=mesh["dp"].get_group())
    adam = torch.optim.AdamW(stage.parameters(), fused=True)
    if o.pp > 1:
        rank = mesh["pp"].get_local_rank()
        pipe = Schedule1F1B(
            PipelineStage(model, rank, o.pp, device, group=mesh["pp"].get_group()),
            o.micro_batches, loss_fn=loss_of, scale_grads=False)

    def step():
        if o.pp > 1:
            pipe.step(*([tokens[0]] if rank == 0 else []), return_outputs=False,
                      **({"target": tokens[1]} if rank == o.pp - 1 else {}))
        else:
            parts = list(zip(*(t.chunk(o.micro_batches) for t in tokens)))
            for i, (x, y) in enumerate(parts):
                last = i + 1 == len(parts)
                if o.fsdp:
                    model.set_requires_gradient_sync(last)
                with (model.no_sync() if o.dp > 1 and not last and not o.fsdp
                      else contextlib.nullcontext()):
                    loss_of(model(x), y).backward()
        adam.step()
        adam.zero_grad()

    return step


def record(step, path):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 record_shapes=True,
                 schedule=schedule(wait=1, warmup=1, active=2)) as recorded:
        for _ in range(4):
            step()
            recorded.step()
    recorded.export_chrome_trace(path)


def main():
    o = options()
    local = int(os.environ.get("LOCAL_RANK", 0))
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    mesh = None
    if o.dp * o.pp * o.tp > 1:
        dist.init_process_group("nccl")
        mesh = init_device_mesh("cuda", (o.dp, o.pp, o.tp),
                                mesh_dim_names=("dp", "pp", "tp"))
    place = mesh["pp"].get_local_rank() if o.pp > 1 else 0
    torch.set_default_dtype(torch.bfloat16)
    with device:
        stage = Stage(o, mesh["tp"].get_group() if o.tp > 1 else None,
                      place * o.layers // o.pp, (place + 1) * o.layers // o.pp)
    torch.set_default_dtype(torch.float)
    step = steps_of(o, stage, mesh, device)
    if o.profile:
        record(step, o.profile)
    else:
        for _ in range(o.steps):
            step()
    if mesh:  # without it PyTorch's threads may outlive the process's end (SIGABRT)
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
