# SPDX-License-Identifier: Apache-2.0
"""A training step of MPT under FSDP1, as llm-foundry's throughput table has it.

    memsim run --cluster dgx-h100 --nnodes 16 --nproc-per-node 8 --ranks 0 -- \
        python bench/distributed/mpt_step.py --size 7b --micro 6

Plain PyTorch: learned positions, biases, tied embeddings, blocks wrapped one by
one, bf16 autocast, a fused loss. Each micro batch's gradients are reduced, and
the norm of all is clipped.
"""
import argparse
import functools
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl, apply_activation_checkpointing, checkpoint_wrapper)
from torch.distributed.fsdp import (
    FullyShardedDataParallel, MixedPrecision, ShardingStrategy)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn.attention import SDPBackend, sdpa_kernel

VOCABULARY = 50368
# Width, heads, layers: llm-foundry, scripts/train/yamls/pretrain/mpt-*.yaml
SIZES = {"125m": (768, 12, 12), "350m": (1024, 16, 24), "760m": (1536, 12, 24),
         "1b": (2048, 16, 24), "3b": (2560, 20, 32), "7b": (4096, 32, 32),
         "13b": (5120, 40, 40), "30b": (7168, 56, 48), "70b": (8192, 64, 80)}


@torch.compile
def fused_loss(logits, labels):
    """In place of flash-attn's loss: no fp32 copy of the logits."""
    with torch.autocast("cuda", enabled=False):
        return F.cross_entropy(logits.float(), labels)


class Norm(nn.LayerNorm):
    """Layer norm in bf16 ("low_precision_layernorm")."""

    def forward(self, x):
        with torch.autocast("cuda", enabled=False):
            return F.layer_norm(
                x.bfloat16(), self.normalized_shape, self.weight.bfloat16(),
                self.bias.bfloat16(), self.eps)


class Unpad(torch.autograd.Function):
    """The rows of X that PLACES names. llm-foundry 0.4 takes padding out of
    queries, keys and values before attention, in every layer, also where there
    is none."""

    @staticmethod
    def forward(ctx, x, places):
        index = places[:, None].expand(-1, x.shape[1])
        ctx.save_for_backward(index)
        ctx.rows = x.shape[0]
        return torch.gather(x, 0, index)

    @staticmethod
    def backward(ctx, gradient):
        index, = ctx.saved_tensors
        x = gradient.new_zeros(ctx.rows, gradient.shape[1])
        return x.scatter_(0, index, gradient), None


class Pad(torch.autograd.Function):
    """The inverse of Unpad: X as some of ROWS rows."""

    @staticmethod
    def forward(ctx, x, places, rows):
        ctx.save_for_backward(places)
        y = x.new_zeros(rows, x.shape[1])
        y[places] = x
        return y

    @staticmethod
    def backward(ctx, gradient):
        places, = ctx.saved_tensors
        return gradient[places], None, None


def unpad(x, mask):
    """X (batch, length, width) without padding; and where its rows were."""
    lengths = mask.sum(-1, dtype=torch.int32)
    places = torch.nonzero(mask.flatten()).flatten()
    lengths.max().item()  # the kernel's argument: the host waits
    F.pad(torch.cumsum(lengths, 0, dtype=torch.int32), (1, 0))
    return Unpad.apply(x.flatten(0, 1), places), places


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = Norm(width), Norm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        shape = (*x.shape[:2], self.heads, -1)
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        parts = [unpad(part, mask)
                 for part in self.qkv(self.norm_1(x)).chunk(3, -1)]
        q, k, v = (part.view(shape).transpose(1, 2) for part, _ in parts)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # cuDNN's on an H100
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = Pad.apply(y.transpose(1, 2).reshape(mask.numel(), -1), parts[0][1],
                      mask.numel())
        x = x + self.out(y.view(x.shape))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Model(nn.Module):
    def __init__(self, width, heads, layers, length):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = Norm(width)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.words.weight)
        labels = torch.roll(tokens, -1, 1)
        return fused_loss(logits.flatten(0, 1), labels.flatten())


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--micro", type=int, required=True)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--strategy", default="FULL_SHARD")
    parser.add_argument("--pure", action="store_true",
                        help="gradients are reduced in bf16, not in fp32")
    parser.add_argument("--steps", type=int, default=4)
    return parser.parse_args()


def build(options):
    with torch.device("meta"):
        model = Model(*SIZES[options.size], options.length)
    if os.environ["RANK"] == "0":
        print("parameters", sum(p.numel() for p in model.parameters()))
    bf16 = torch.bfloat16
    reduced = bf16 if options.pure else torch.float32
    model = FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({Block}),
        sharding_strategy=ShardingStrategy[options.strategy],
        mixed_precision=MixedPrecision(bf16, reduced, bf16),
        device_id=torch.cuda.current_device(), limit_all_gathers=True,
        param_init_fn=lambda m: m.to_empty(device="cuda", recurse=False),
        use_orig_params=True)
    if options.checkpoint:
        wrap = functools.partial(checkpoint_wrapper,
                                 checkpoint_impl=CheckpointImpl.NO_REENTRANT)
        apply_activation_checkpointing(
            model, checkpoint_wrapper_fn=wrap,
            check_fn=lambda m: isinstance(m, Block))
    return model


def main():
    options = parse()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = build(options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    for _ in range(options.steps):
        optimizer.zero_grad()
        for _ in range(options.accumulate):
            tokens = torch.randint(
                VOCABULARY, (options.micro, options.length), device="cuda")
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(tokens)
            (loss / options.accumulate).backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
