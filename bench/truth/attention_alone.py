# SPDX-License-Identifier: Apache-2.0
"""Attention alone, in float16 and not causal, as fxmarty's benchmark has it:
forward in inference mode, or forward and backward with dropout of 0.1, which
that program's default is."""
import argparse
import math

import torch
from torch import nn


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attention", choices=["eager", "sdpa"])
    parser.add_argument("mode", choices=["fwd", "fwd_bwd"])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--head-size", type=int, required=True)
    parser.add_argument("--steps", type=int, default=30)
    return parser.parse_args()


def eager(query, key, value, dropout):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    weights = nn.functional.dropout(torch.softmax(scores, dim=-1), dropout)
    return weights @ value


def sdpa(query, key, value, dropout):
    return nn.functional.scaled_dot_product_attention(query, key, value,
                                                      dropout_p=dropout)


ATTENTION = {"eager": eager, "sdpa": sdpa}


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        tensors = torch.randn(args.batch, 3, args.heads, args.seq,
                              args.head_size, device="cuda",
                              dtype=torch.float16).unbind(dim=1)
        self.query, self.key, self.value = map(nn.Parameter, tensors)
        self.attention = ATTENTION[args.attention]

    def forward(self, dropout):
        return self.attention(self.query, self.key, self.value, dropout)


def main():
    args = parse()
    model = Attention(args)
    for _ in range(args.steps):
        if args.mode == "fwd":
            with torch.inference_mode():
                model(0.0)
        else:
            model.zero_grad()
            model(0.1).sum().backward()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
