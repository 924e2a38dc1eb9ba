# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT-2 small from scratch on random tokens: AdamW, bf16 autocast.

An ordinary PyTorch script, with nothing specific to memsim:

    memsim run -- python examples/train_gpt2.py --batch 8
"""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * width, width),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, vocabulary=50257, length=1024, width=768, layers=12,
                 heads=12, recompute=False):
        super().__init__()
        self.recompute = recompute
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens, targets):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.position(places)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute \
                else block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--fp32", action="store_true", help="no autocast")
    parser.add_argument("--recompute", action="store_true",
                        help="activation checkpointing of each block")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    with device:
        model = GPT2(length=args.length, recompute=args.recompute)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    count = sum(p.numel() for p in model.parameters())
    print(f"{torch.cuda.get_device_name()}: {count / 1e6:.1f} M parameters, "
          f"batch {args.batch} x {args.length}")

    for step in range(args.steps):
        start = time.perf_counter()
        tokens = torch.randint(50257, (args.batch, args.length + 1),
                               device=device)
        with torch.autocast("cuda", torch.bfloat16, enabled=not args.fp32):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        torch.cuda.synchronize()
        print(f"step {step}: loss {loss.item():.3f}, "
              f"{(time.perf_counter() - start) * 1e3:.0f} ms")
    peak = torch.cuda.max_memory_allocated() / 2**30
    print(f"peak allocated {peak:.2f} GiB")


if __name__ == "__main__":
    main()
