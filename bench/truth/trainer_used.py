# SPDX-License-Identifier: Apache-2.0
"""One row of transformers' old guide to training on one GPU: BERT large on a
V100, 512 random sequences of 512 tokens. What counts is what nvidia-smi shows
at the end; the loop is Trainer's of early 2022, when CUDA loaded every kernel
at once (v100_2022.json)."""
import argparse
import os
import warnings

os.environ["CUDA_MODULE_LOADING"] = "EAGER"

import torch
import transformers as hf

from peaks import print_peaks

BERT_LARGE = dict(hidden_size=1024, intermediate_size=4096,
                  num_hidden_layers=24, num_attention_heads=16)


class OldSoftmax(torch.autograd.Function):
    """Until PyTorch 1.10 softmax kept its input, too, for the way back, where
    it served for its type only (derivatives.yaml, _softmax)."""

    @staticmethod
    def forward(ctx, scores, dim):
        result = torch.softmax(scores, dim)
        ctx.save_for_backward(scores, result)
        ctx.dim = dim
        return result

    @staticmethod
    def backward(ctx, gradient):
        _, result = ctx.saved_tensors
        return torch._softmax_backward_data(gradient, result, ctx.dim,
                                            result.dtype), None


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--adafactor", action="store_true")
    parser.add_argument("--adam8bit", action="store_true",
                        help="of bitsandbytes")
    parser.add_argument("--load-only", action="store_true")
    parser.add_argument("--context-only", action="store_true")
    return parser.parse_args()


def make_optimizer(args, model):
    if args.adafactor:
        return hf.Adafactor(model.parameters(), lr=5e-5, scale_parameter=False,
                            relative_step=False)
    if args.adam8bit:
        import bitsandbytes
        return bitsandbytes.optim.Adam8bit(model.parameters(), lr=5e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return hf.AdamW(model.parameters(), lr=5e-5)


def forward_backward(args, model, scaler):
    shape = args.batch, 512
    batch = {"input_ids": torch.randint(100, 30000, shape).cuda(),
             "labels": torch.randint(0, 2, shape[:1]).cuda()}
    with torch.autocast("cuda", torch.float16, enabled=args.fp16):
        loss = model(**batch).loss / args.accumulate
    scaler.scale(loss).backward()


def train(args, model):
    model.train()
    if args.checkpoint:
        model.gradient_checkpointing_enable()
    optimizer = make_optimizer(args, model)
    scaler = torch.amp.GradScaler("cuda", enabled=args.fp16)
    for _ in range(args.steps):
        for _ in range(args.accumulate):
            forward_backward(args, model, scaler)
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        model.zero_grad(set_to_none=False)  # the default before 2.0


def run(args):
    if args.context_only:
        torch.zeros(256, device="cuda")
        return
    torch.nn.functional.softmax = lambda x, dim: OldSoftmax.apply(x, dim)
    config = hf.BertConfig(**BERT_LARGE, attn_implementation="eager")
    model = hf.BertForSequenceClassification(config).cuda()
    if not args.load_only:
        train(args, model)
    torch.cuda.synchronize()


def main():
    run(parse())
    print_peaks()


if __name__ == "__main__":
    main()
