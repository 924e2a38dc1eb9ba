# SPDX-License-Identifier: Apache-2.0
"""A small transformer, trained in each of PyTorch's parallel forms.

    memsim run --nnodes 2 --nproc-per-node 8 -- \
        python examples/parallel.py fsdp2 --hsdp 2 --mixed

bench/distributed runs every form.
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

WIDTH, HEADS, WORDS, LENGTH = 256, 8, 1024, 128


class Block(nn.Module):
    def __init__(self, feed=None):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.out = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.feed = feed or nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attention(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
                   for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(-2))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed(self.norm_2(x))


class Model(nn.Module):
    """All of it, or the part that a pipeline's STAGE of STAGES has."""

    def __init__(self, layers, stage=0, stages=1, feed=lambda: None):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH) if stage == 0 else None
        self.blocks = nn.ModuleList(
            Block(feed()) for i in range(layers) if i * stages // layers == stage)
        last = stage == stages - 1
        self.norm = nn.LayerNorm(WIDTH) if last else None
        self.head = nn.Linear(WIDTH, WORDS, bias=False) if last else None

    def forward(self, x):
        if self.words is not None:
            x = self.words(x)
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(self.norm(x))


def loss_of(scores, tokens):
    return F.cross_entropy(scores.flatten(0, 1).float(), tokens.flatten())


def tokens_of(batch, length=LENGTH):
    return torch.randint(WORDS, (batch, length), device="cuda")


def train(model, steps, batch, scaled=None):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        tokens = tokens_of(batch)
        loss_of(model(tokens), tokens).backward()
        optimizer.step()
        optimizer.zero_grad()


def ddp(args):
    model = nn.parallel.DistributedDataParallel(
        Model(args.layers).cuda(), gradient_as_bucket_view=args.bucket_view,
        static_graph=args.static_graph)
    if args.hook:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        model.register_comm_hook(None, getattr(default_hooks, args.hook))
    train(model, args.steps, args.batch)


def fsdp1(args):
    from torch.distributed.fsdp import (
        CPUOffload, FullyShardedDataParallel, MixedPrecision, ShardingStrategy)
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    half = MixedPrecision(torch.bfloat16, torch.float32) if args.mixed else None
    model = FullyShardedDataParallel(
        Model(args.layers), device_id=torch.cuda.current_device(),
        auto_wrap_policy=ModuleWrapPolicy({Block}), mixed_precision=half,
        cpu_offload=CPUOffload(True) if args.offload else None,
        sharding_strategy=ShardingStrategy.FULL_SHARD if args.reshard
        else ShardingStrategy.SHARD_GRAD_OP)
    train(model, args.steps, args.batch)


def fsdp2(args, mesh=None, model=None):
    from torch.distributed.fsdp import (
        CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard)
    options = {"mesh": mesh, "reshard_after_forward": args.reshard}
    if args.hsdp:
        options["mesh"] = init_device_mesh(
            "cuda", (args.hsdp, dist.get_world_size() // args.hsdp),
            mesh_dim_names=("replicate", "shard"))
    if args.mixed:
        options["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16,
                                                    torch.float32)
    if args.offload:
        options["offload_policy"] = CPUOffloadPolicy()
    build = model is None
    model = Model(args.layers) if build else model
    if not args.offload:
        model.cuda()
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    if build:
        train(model, args.steps, args.batch)
    return model


def split_tensors(model, mesh):
    """Tensor and sequence parallel."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
        parallelize_module)
    plan = {"norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1),
                                    output_layouts=Replicate()),
            "words": RowwiseParallel(input_layouts=Replicate(),
                                     output_layouts=Shard(1))}
    parallelize_module(model, mesh, {name: how for name, how in plan.items()
                                     if getattr(model, name) is not None})
    whole = {"input_layouts": (Shard(1),),
             "desired_input_layouts": (Replicate(),)}
    for block in model.blocks:
        block.attention_input = nn.Identity()
        parallelize_module(block, mesh, {
            "norm_1": SequenceParallel(), "norm_2": SequenceParallel(),
            "q": ColwiseParallel(input_layouts=Shard(1)),
            "k": ColwiseParallel(input_layouts=Shard(1)),
            "v": ColwiseParallel(input_layouts=Shard(1)),
            "out": RowwiseParallel(output_layouts=Shard(1)),
            "feed": PrepareModuleInput(**whole),
            "feed.0": ColwiseParallel(),
            "feed.2": RowwiseParallel(output_layouts=Shard(1))})
    return model


def tp(args):
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    train(split_tensors(Model(args.layers).cuda(), mesh), args.steps,
          args.batch)


def cp(args):
    from torch.distributed.tensor.experimental import context_parallel
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = Model(args.layers).cuda().bfloat16()
    for parameter in model.parameters():
        dist.broadcast(parameter.data, 0)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(args.steps):
        tokens = tokens_of(args.batch, LENGTH * dist.get_world_size())
        with context_parallel(mesh, buffers=(tokens,), buffer_seq_dims=(1,)):
            loss_of(model(tokens), tokens).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()


def stages_of(args, rank, ranks):
    """The stages of a rank: DualPipe's and zero bubble's V has the first and
    the last one on the first rank."""
    if args.schedule in ("ZBVZeroBubble", "DualPipeV"):
        return [rank, 2 * ranks - 1 - rank]
    many = 2 if "Interleaved" in args.schedule or "Looped" in args.schedule \
        else 1
    return [rank + i * ranks for i in range(many)]


def pp(args, mesh=None, shape=lambda model: model):
    from torch.distributed import pipelining
    group = mesh.get_group() if mesh else dist.group.WORLD
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    mine = stages_of(args, rank, ranks)
    count = len(mine) * ranks
    models = [shape(Model(count * args.layers, i, count).cuda()) for i in mine]
    parts = [pipelining.PipelineStage(model, i, count, torch.device("cuda"),
                                      group=group)
             for i, model in zip(mine, models)]
    kind = getattr(pipelining, "Schedule" + args.schedule, None) or getattr(
        pipelining.schedules, "Schedule" + args.schedule)
    schedule = kind(parts if len(parts) > 1 else parts[0], args.micro,
                    loss_fn=loss_of)
    optimizer = torch.optim.AdamW(p for m in models for p in m.parameters())
    for _ in range(args.steps):
        tokens = tokens_of(args.batch * args.micro)
        first, last = 0 in mine, count - 1 in mine
        schedule.step(*([tokens] if first else []),
                      **({"target": tokens} if last else {}))
        optimizer.step()
        optimizer.zero_grad()


def mesh(args):
    """2D to 4D: --mesh pp=2,dp=2,tp=2, of which any may be left out."""
    sizes = dict(part.split("=") for part in args.mesh.split(","))
    names = tuple(sizes)
    whole = init_device_mesh("cuda", tuple(map(int, sizes.values())),
                             mesh_dim_names=names)
    sharded = tuple(name for name in names if name.startswith("dp"))

    def shape(model):
        if "tp" in names:
            model = split_tensors(model, whole["tp"])
        if sharded:
            model = fsdp2(args, whole[sharded], model)
        return model

    if "pp" in names:
        pp(args, whole["pp"], shape)
    else:
        train(shape(Model(args.layers).cuda()), args.steps, args.batch)


class Experts(nn.Module):
    """One expert on each rank. A token goes where ROUTING says: to each as
    often, to few more often (Zipf), or as a file of expert numbers has it."""

    def __init__(self, routing):
        super().__init__()
        self.expert = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        ranks = dist.get_world_size()
        if routing == "uniform":
            self.shares = torch.ones(ranks)
        elif routing == "zipf":
            self.shares = 1 / torch.arange(1, ranks + 1)
        else:
            with open(routing, encoding="utf-8") as file:
                numbers = [int(word) % ranks for word in file.read().split()]
            self.shares = torch.bincount(torch.tensor(numbers),
                                         minlength=ranks).float()

    def forward(self, x):
        from torch.distributed.nn.functional import all_to_all_single
        flat = x.reshape(-1, WIDTH)
        sends = (self.shares / self.shares.sum() * len(flat)).long()
        sends[0] += len(flat) - sends.sum()
        receives = torch.empty_like(sends, device="cuda")
        dist.all_to_all_single(receives, sends.cuda())
        sends, receives = sends.tolist(), receives.tolist()
        got = all_to_all_single(flat.new_empty(sum(receives), WIDTH), flat,
                                receives, sends)
        back = all_to_all_single(torch.empty_like(flat), self.expert(got),
                                 sends, receives)
        return back.view_as(x)


def moe(args):
    model = Model(args.layers, feed=lambda: Experts(args.routing)).cuda()
    train(model, args.steps, args.batch)


def options():
    parser = argparse.ArgumentParser()
    forms = ddp, fsdp1, fsdp2, tp, cp, pp, mesh, moe
    parser.add_argument("form", choices=[form.__name__ for form in forms])
    for flag in "bucket-view", "static-graph", "mixed", "offload":
        parser.add_argument("--" + flag, action="store_true")
    parser.add_argument("--no-reshard", dest="reshard", action="store_false")
    parser.add_argument("--hook", help="such as bf16_compress_hook")
    parser.add_argument("--hsdp", type=int, help="replicas")
    parser.add_argument("--schedule", default="1F1B")
    parser.add_argument("--mesh", default="dp=2,tp=2")
    parser.add_argument("--routing", default="uniform")
    for name, value in ("layers", 2), ("batch", 4), ("steps", 3), ("micro", 8):
        parser.add_argument("--" + name, type=int, default=value)
    return parser.parse_args()


def main():
    args = options()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    globals()[args.form](args)
    peak = torch.cuda.max_memory_allocated() / 2**20
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: "
          f"peak allocated {peak:.1f} MiB")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
