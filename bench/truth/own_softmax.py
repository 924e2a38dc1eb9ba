# SPDX-License-Identifier: Apache-2.0
"""Attention of one head in plain operations, softmax among them: what is
allocated before backward, in float32, once both threads have multiplied."""
import argparse
import json

import torch


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--gradient", action="store_true",
                        help="backward starts from a gradient made before, and "
                        "the output of the step before is held meanwhile")
    return parser.parse_args()


def softmax(scores):
    powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return powers / powers.sum(dim=-1, keepdim=True)


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return softmax(scores) @ v


def main():
    args = parse()
    shape = args.batch, args.seq, args.width
    q, k, v = (torch.randn(shape, device="cuda", requires_grad=True)
               for _ in range(3))
    gradient = torch.randn_like(q) if args.gradient else None
    held = None
    for _ in range(args.steps):
        for tensor in q, k, v:
            tensor.grad = None
        output = attention(q, k, v)
        before = torch.cuda.memory_allocated()
        if args.gradient:
            output.backward(gradient)
            held = output.detach()
        else:
            held = output.sum()
            held.backward()
        del output
    print(json.dumps({
        "torch": torch.__version__,
        "allocated_bytes": before,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }))


if __name__ == "__main__":
    main()
