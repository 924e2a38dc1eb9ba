# SPDX-License-Identifier: Apache-2.0
"""One of the 19 runs that vramcalc's author measured on an RTX A6000: inference
with a cache, or training with AdamW on one batch, gradients zeroed in place.
Printed is the `total` of its table: the allocated peak, warm-up left out."""
import argparse
import contextlib

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import models
from peaks import print_peaks

LORA_LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(models.LANGUAGE))
    parser.add_argument("mode", choices=["inference", "train"])
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--lora", type=int, default=0, metavar="RANK")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args()


def make(args):
    dtype = torch.float32 if args.amp else torch.bfloat16
    with torch.device("cuda"):
        model = models.make_language(args.model, torch_dtype=dtype,
                                     attn_implementation=args.attention)
    if args.lora:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(
            r=args.lora, lora_alpha=args.lora, lora_dropout=0.0,
            target_modules=LORA_LAYERS, task_type="CAUSAL_LM"))
    return model


def attention(args):
    if args.attention != "sdpa":
        return contextlib.nullcontext()
    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION,
                        SDPBackend.FLASH_ATTENTION])


def infer(args, model, ids):
    model.eval()
    torch.cuda.reset_peak_memory_stats()
    with torch.inference_mode(), attention(args):
        model(input_ids=ids, use_cache=True)


def train_step(args, model, optimizer, ids):
    with attention(args):
        with torch.autocast("cuda", torch.bfloat16, enabled=args.amp):
            output = model(input_ids=ids, labels=ids, use_cache=False)
        output.loss.backward()
    del output  # with the logits, so before the optimizer's own need
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


def train(args, model, ids):
    model.train()
    model.config.use_cache = False
    if args.checkpoint:
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=1e-5,
        foreach=True)
    train_step(args, model, optimizer, ids)
    for _ in range(args.steps):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        train_step(args, model, optimizer, ids)


def main():
    args = parse()
    model = make(args)
    ids = torch.randint(0, model.config.vocab_size, (1, args.seq),
                        device="cuda")
    (infer if args.mode == "inference" else train)(args, model, ids)
    print_peaks()


if __name__ == "__main__":
    main()
