# SPDX-License-Identifier: Apache-2.0
"""A training step of a GPT as Megatron-LM of 2021 to 2023 runs it.

    memsim run --cluster dgx-a100 --nnodes 8 --nproc-per-node 8 --ranks 0 -- \
        python bench/distributed/gpt_step.py --layers 30 --width 3072 \
        --heads 32 --tp 2 --micro 8 --micro-batches 2

Plain PyTorch, after the descriptions of arXiv 1909.08053, 2104.04473 and
2205.05198: tensor parallel layers, unfused attention with dropout, a pipeline
(1F1B), flat buffers of parameters and gradients, gradients reduced once after the
last micro-batch. Each tensor parallel rank sends its part of what goes from a stage
to the next, and the parts are gathered there, as Megatron and DeepSpeed do.
--zero1 is DeepSpeed's: each rank of a data-parallel group updates its part.
--add-in-fp32 is its optimizer of bfloat16: a stage's gradients are added to a
buffer of fp32 after its backward, and stay until the next.
"""
import argparse
import collections
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

DROPOUT = 0.1  # Megatron's default


class Copy(torch.autograd.Function):
    """Into a tensor-parallel region: gradients are summed."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx, gradient):
        if ctx.group.size() > 1:
            dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class Sum(torch.autograd.Function):
    """Out of a tensor-parallel region."""

    @staticmethod
    def forward(_, x, group):
        if group.size() > 1:
            dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(_, gradient):
        return gradient, None


def gathered(x, group):
    y = x.new_empty(x.shape[0] * group.size(), *x.shape[1:])
    dist.all_gather_into_tensor(y, x.contiguous(), group=group)
    return y


def scattered(x, group):
    y = x.new_empty(x.shape[0] // group.size(), *x.shape[1:])
    dist.reduce_scatter_tensor(y, x.contiguous(), group=group)
    return y


class Gather(torch.autograd.Function):
    """Into a tensor-parallel region whose input is split by the sequence."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return gathered(x, group)

    @staticmethod
    def backward(ctx, gradient):
        return scattered(gradient, ctx.group), None


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return scattered(x, group)

    @staticmethod
    def backward(ctx, gradient):
        return gathered(gradient, ctx.group), None


def own(x, group):
    """This rank's part of X, flat."""
    return x.flatten().chunk(group.size())[group.rank()]


class Split(torch.autograd.Function):
    """Out of a stage: the part that this rank sends."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group, ctx.shape = group, x.shape
        return own(x, group).clone()

    @staticmethod
    def backward(ctx, gradient):
        return gathered(gradient, ctx.group).view(ctx.shape), None


class Join(torch.autograd.Function):
    """Into a stage: all parts."""

    @staticmethod
    def forward(ctx, x, group, shape):
        ctx.group = group
        return gathered(x, group).view(shape)

    @staticmethod
    def backward(ctx, gradient):
        return own(gradient, ctx.group).clone(), None, None


class Loss(torch.autograd.Function):
    """Cross entropy of logits whose vocabulary is split."""

    @staticmethod
    def forward(ctx, logits, targets, group):
        top = logits.amax(-1)
        dist.all_reduce(top, dist.ReduceOp.MAX, group)
        logits.sub_(top[:, None])
        first = group.rank() * logits.shape[1]
        outside = (targets < first) | (targets >= first + logits.shape[1])
        local = (targets - first).masked_fill_(outside, 0)
        chosen = logits.gather(1, local[:, None])[:, 0]
        chosen = chosen.masked_fill_(outside, 0)
        dist.all_reduce(chosen, group=group)
        total = logits.exp_().sum(-1)
        dist.all_reduce(total, group=group)
        logits.div_(total[:, None])
        ctx.save_for_backward(logits, outside, local)
        return (total.log() - chosen).mean()

    @staticmethod
    def backward(ctx, gradient):
        y, outside, local = ctx.saved_tensors
        y.scatter_add_(1, local[:, None], outside[:, None].float() - 1)
        return y.mul_(gradient / y.shape[0]), None, None


@torch.compile(dynamic=False)
def add_dropped(x, residual):
    """One kernel, as Megatron's (there the bias is added in it, too)."""
    return residual + F.dropout(x, DROPOUT)


class Linear(nn.Module):
    """A part of a linear layer. Where parts are summed, so are their biases."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Attention(nn.Module):
    def __init__(self, options, group):
        super().__init__()
        width, tp = options.width, group.size()
        self.size, self.heads = width // options.heads, options.heads // tp
        self.qkv = Linear(width, 3 * width // tp)
        self.out = Linear(width // tp, width)
        self.selective = options.recompute == "selective"

    def attend(self, q, k, v):
        """Megatron's kernel scales and masks in its softmax: as many bytes."""
        scores = torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2),
                               beta=0, alpha=self.size**-0.5)
        return F.dropout(torch.softmax(scores, -1), DROPOUT) @ v

    def forward(self, x):
        length, batch, _ = x.shape
        qkv = self.qkv(x).view(length, batch * self.heads, 3 * self.size)
        parts = [p.transpose(0, 1) for p in qkv.chunk(3, -1)]
        y = (checkpoint(self.attend, *parts, use_reentrant=False)
             if self.selective else self.attend(*parts))
        return self.out(y.transpose(0, 1).reshape(length, batch, -1))


class Block(nn.Module):
    def __init__(self, options, group):
        super().__init__()
        width, tp = options.width, group.size()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(options, group)
        self.up = Linear(width, 4 * width // tp)
        self.down = Linear(4 * width // tp, width)
        self.enter, self.leave = ((Gather, Scatter) if
                                  options.sequence_parallel else (Copy, Sum))
        self.group = group

    def forward(self, x):
        def inside(function, y):
            return self.leave.apply(
                function(self.enter.apply(y, self.group)), self.group)

        y = inside(self.attention, self.norm1(x))
        x = add_dropped(y, x)
        y = inside(lambda z: self.down(F.gelu(self.up(z), approximate="tanh")),
                   self.norm2(x))
        return add_dropped(y, x)


class Words(nn.Module):
    """The embedding: a part of the vocabulary."""

    def __init__(self, options, group):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(
            options.vocabulary // group.size(), options.width))
        self.places = nn.Parameter(torch.empty(
            options.length, 1, options.width)) if options.places else None
        self.norm = None if options.places else nn.LayerNorm(options.width)
        self.group, self.leave = group, (
            Scatter if options.sequence_parallel else Sum)

    def forward(self, tokens):
        part = self.weight.shape[0]
        first = self.group.rank() * part
        outside = (tokens < first) | (tokens >= first + part)
        x = F.embedding((tokens - first).masked_fill_(outside, 0), self.weight)
        x = x.masked_fill(outside[..., None], 0).transpose(0, 1).contiguous()
        if self.norm:
            return F.dropout(self.norm(Sum.apply(x, self.group)), DROPOUT)
        x = x + self.places / self.group.size()
        return F.dropout(self.leave.apply(x, self.group), DROPOUT)


class Stage(nn.Module):
    """Layers FIRST to LAST, with what stands before and after."""

    def __init__(self, options, group, first, last):
        super().__init__()
        self.full = options.recompute == "full"
        self.words = Words(options, group) if first == 0 else None
        self.layers = nn.ModuleList(
            Block(options, group) for _ in range(first, last))
        self.norm = self.head = None
        if last == options.layers:
            self.norm = nn.LayerNorm(options.width)
            self.head = self.words.weight if self.words else nn.Parameter(
                torch.empty(options.vocabulary // group.size(), options.width))
        self.group = group
        self.enter = Gather if options.sequence_parallel else Copy

    def forward(self, x):
        if self.words:
            x = self.words(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.full \
                else layer(x)
        if self.head is None:
            return x
        x = self.enter.apply(self.norm(x), self.group)
        return F.linear(x, self.head)

    def loss(self, logits, tokens):
        targets = torch.roll(tokens, -1, 1).transpose(0, 1).reshape(-1)
        return Loss.apply(logits.flatten(0, 1).float(), targets, self.group)


class Flat:
    """The parameters of a stage in one buffer, its gradients in another, and
    the optimizer of both."""

    def __init__(self, stage, options, group):
        params = list(dict.fromkeys(stage.parameters()))
        dtype = getattr(torch, options.dtype)
        size = sum(p.numel() for p in params)
        size += -size % group.size()
        self.group, self.zero1 = group, options.zero1
        self.add_in_fp32 = options.add_in_fp32
        self.values = torch.zeros(size, dtype=dtype, device="cuda")
        self.gradients = torch.zeros(
            size, device="cuda",
            dtype=torch.float if self.add_in_fp32 else dtype)
        views, start = {}, 0
        for p in params:
            end = start + p.numel()
            views[p] = nn.Parameter(self.values[start:end].view(p.shape))
            views[p].main = self.gradients[start:end].view(p.shape)
            if not self.add_in_fp32:
                views[p].grad = views[p].main
            start = end
        self.params = list(views.values())
        for module in stage.modules():
            for name, p in module._parameters.items():
                if p is not None:
                    module._parameters[name] = views[p]
        self.master = nn.Parameter(self.part(self.values).float())
        self.adam = torch.optim.AdamW([self.master], lr=1e-4, fused=True)

    def before_backward(self):
        if self.add_in_fp32:
            for p in self.params:
                p.grad = None

    def after_backward(self):
        if self.add_in_fp32:
            for p in self.params:
                p.main.add_(p.grad.float())

    def part(self, buffer):
        return own(buffer, self.group) if self.zero1 else buffer

    @torch.no_grad()
    def step(self, models):
        if self.group.size() > 1:
            self.gradients.div_(self.group.size())
            dist.all_reduce(self.gradients, group=self.group)
        self.master.grad = self.part(self.gradients).float()
        norm = torch.linalg.vector_norm(self.gradients) ** 2
        dist.all_reduce(norm, group=models)
        self.master.grad.mul_(1 / max(1.0, norm.sqrt().item()))
        self.adam.step()
        self.master.grad = None
        self.part(self.values).copy_(self.master)
        if self.zero1 and self.group.size() > 1:
            dist.all_gather_into_tensor(
                self.values, self.part(self.values), group=self.group)
        self.gradients.zero_()


def parse():
    parser = argparse.ArgumentParser()
    for name in ("layers", "width", "heads", "micro", "micro-batches"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--vocabulary", type=int, default=51200)
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--pp", type=int, default=1)
    parser.add_argument("--dtype", default="float16",
                        choices=("float16", "bfloat16"))
    parser.add_argument("--recompute", default="full",
                        choices=("full", "selective", "none"))
    parser.add_argument("--sequence-parallel", action="store_true")
    parser.add_argument("--no-places", dest="places", action="store_false",
                        help="no learned positions; the embedding is normed")
    parser.add_argument("--zero1", action="store_true")
    parser.add_argument("--add-in-fp32", action="store_true")
    parser.add_argument("--steps", type=int, default=4)
    return parser.parse_args()


def stage_layers(options, index):
    """The embedding and the head count as a layer if that makes stages even."""
    layers, stages = options.layers, options.pp
    ends = 1 if layers % stages else 0
    each = (layers + 2 * ends) // stages
    return (max(0, index * each - ends),
            min(layers, (index + 1) * each - ends))


class Pipeline:
    """1F1B: a stage runs each micro-batch's backward as soon as it can."""

    def __init__(self, options, mesh, stage, flat):
        self.options, self.stage, self.flat = options, stage, flat
        self.group, self.parts = (mesh[x].get_group() for x in ("pp", "tp"))
        self.index = mesh["pp"].get_local_rank()
        self.last = options.pp - 1
        self.split = options.tp > 1 and not options.sequence_parallel
        length = options.length // (
            options.tp if options.sequence_parallel else 1)
        self.shape = length, options.micro, options.width
        self.open = collections.deque()

    def exchange(self, sent=None, to=-1, source=-1):
        """Sends to stage TO, and returns what stage SOURCE sends."""
        calls, received = [], None
        if 0 <= to <= self.last:
            calls.append(dist.P2POp(dist.isend, sent, group=self.group,
                                    group_peer=to))
        if 0 <= source <= self.last:
            received = self.flat.values.new_empty(self.shape)
            if self.split:
                received = received.new_empty(
                    received.numel() // self.options.tp)
            calls.append(dist.P2POp(dist.irecv, received, group=self.group,
                                    group_peer=source))
        for work in dist.batch_isend_irecv(calls) if calls else ():
            work.wait()
        return received

    def forward(self, x):
        stage = self.stage
        tokens = torch.randint(
            self.options.vocabulary, (self.options.micro, self.options.length),
            device="cuda") if self.index in (0, self.last) else None
        if x is None:
            y = stage(tokens)
        else:
            x.requires_grad_()
            y = stage(Join.apply(x, self.parts, self.shape)
                      if self.split else x)
        if self.index == self.last:
            y = stage.loss(y, tokens) / self.options.micro_batches
        elif self.split:
            y = Split.apply(y, self.parts)
        self.open.append((x, y))
        return y.detach()

    def backward(self, gradient):
        x, y = self.open.popleft()
        self.flat.before_backward()
        torch.autograd.backward(y, gradient)
        self.flat.after_backward()
        return None if x is None else x.grad

    def run(self):
        batches, before, after = (
            self.options.micro_batches, self.index - 1, self.index + 1)
        early = min(self.last - self.index, batches)
        for _ in range(early):
            self.exchange(self.forward(self.exchange(source=before)), after)
        x = self.exchange(source=before if early < batches else -1)
        for left in reversed(range(batches - early)):
            gradient = self.exchange(self.forward(x), after, after)
            x = self.exchange(self.backward(gradient), before,
                              before if left else -1)
        for _ in range(early):
            self.exchange(self.backward(self.exchange(source=after)), before)


class Job:
    """One rank."""

    def __init__(self, options):
        self.options = options
        data = dist.get_world_size() // (options.tp * options.pp)
        self.mesh = init_device_mesh(
            "cuda", (options.pp, data, options.tp),
            mesh_dim_names=("pp", "dp", "tp"))
        self.index = self.mesh["pp"].get_local_rank()
        with torch.device("meta"):
            self.stage = Stage(options, self.mesh["tp"].get_group(),
                               *stage_layers(options, self.index))
        self.flat = Flat(self.stage, options, self.mesh["dp"].get_group())
        self.ties = self.tied()
        self.pipeline = Pipeline(options, self.mesh, self.stage, self.flat)

    def tied(self):
        """The first and the last stage share the embedding."""
        if self.options.pp == 1 or 0 < self.index < self.options.pp - 1:
            return None
        apart = dist.get_world_size() // self.options.pp
        first = dist.get_rank() % apart
        return dist.new_group([first, first + (self.options.pp - 1) * apart],
                              use_local_synchronization=True)

    def step(self):
        self.pipeline.run()
        if self.ties:
            weight = self.stage.words.weight if self.stage.words \
                else self.stage.head
            dist.all_reduce(weight.main, group=self.ties)
        self.flat.step(self.mesh["tp"].get_group())


def main():
    options = parse()
    set_checkpoint_early_stop(False).__enter__()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    job = Job(options)
    for _ in range(options.steps):
        job.step()
    torch.cuda.synchronize()
    if dist.get_rank() == 0:
        print("peak", torch.cuda.max_memory_allocated())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
