# SPDX-License-Identifier: Apache-2.0
"""One row of transformers' tables of eager against SDPA attention: forward and
backward of a model, in float16 if not said otherwise, the loss being the sum of
its logits."""
import argparse

import torch

import models
from peaks import print_peaks


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(models.LANGUAGE))
    parser.add_argument("attention", choices=["eager", "sdpa"])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--head", choices=sorted(models.HEADS))
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--mask", default="ones",
                        choices=["none", "ones", "padded"])
    parser.add_argument("--from-float32", action="store_true",
                        help="made in float32 on the card and converted there")
    parser.add_argument("--one-projection", action="store_true",
                        help="attention reads the queries alone")
    return parser.parse_args()


def use_one_projection():
    attention = torch.nn.functional.scaled_dot_product_attention
    torch.nn.functional.scaled_dot_product_attention = (
        lambda query, key, value, **words:
        attention(query, query, query, **words))


def make_mask(kind, shape):
    if kind == "none":
        return None
    mask = torch.ones(shape, dtype=torch.int64)
    mask[0, 0] = kind == "ones"
    return mask.to("cuda")


def make_model(args):
    dtype = getattr(torch, args.dtype)
    options = {} if args.from_float32 else {"torch_dtype": dtype}
    with torch.device("cuda"):
        model = models.make_language(
            args.model, args.head, attn_implementation=args.attention,
            **options)
    # A model that was made in half precision keeps its float32 buffers: the
    # rotary embedding of GPT-NeoX, and so its eager attention, is in float32.
    return (model.to(dtype) if args.from_float32 else model).train()


def main():
    args = parse()
    if args.one_projection:
        use_one_projection()
    model = make_model(args)
    shape = args.batch, args.seq
    ids = torch.randint(0, model.config.vocab_size, shape, device="cuda")
    mask = make_mask(args.mask, shape)
    torch.cuda.reset_peak_memory_stats()
    for _ in range(args.steps):
        model.zero_grad()
        # While it runs, what the last one returned is held, keys and all.
        output = model(input_ids=ids, attention_mask=mask)
        output.logits.sum().backward()
    print_peaks()


if __name__ == "__main__":
    main()
