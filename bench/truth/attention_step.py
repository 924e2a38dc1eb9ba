# SPDX-License-Identifier: Apache-2.0
"""One row of transformers' tables of eager against SDPA attention: forward and
backward of a model, in float16 if not said otherwise, the loss being the sum of
its logits."""
import argparse
import json

import torch

import models


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(models.LANGUAGE))
    parser.add_argument("attention", choices=["eager", "sdpa"])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--causal", action="store_true", help="BERT's head")
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--no-mask", action="store_true")
    return parser.parse_args()


def main():
    args = parse()
    with torch.device("cuda"):
        model = models.make_language(args.model, args.causal,
                                     torch_dtype=getattr(torch, args.dtype),
                                     attn_implementation=args.attention)
    model.train()
    shape = args.batch, args.seq
    ids = torch.randint(0, model.config.vocab_size, shape, device="cuda")
    mask = None if args.no_mask else torch.ones(shape, dtype=torch.int64,
                                                device="cuda")
    torch.cuda.reset_peak_memory_stats()
    for _ in range(args.steps):
        model.zero_grad()
        output = model(input_ids=ids, attention_mask=mask)
        output.logits.sum().backward()
    print(json.dumps({
        "torch": torch.__version__,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }))


if __name__ == "__main__":
    main()
