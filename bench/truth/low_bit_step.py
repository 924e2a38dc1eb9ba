# SPDX-License-Identifier: Apache-2.0
"""One row of torchao's tables of optimizers: finetuning a timm model to 45
classes, as its benchmark_low_bit_adam.py does; torchao's and bitsandbytes' own
optimizers (PYTHONPATH), random weights."""
import argparse
import functools
import importlib

import timm
import torch

from peaks import print_peaks


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="timm's name")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--size", type=int, help="of the images, if the "
                        "model's is another")
    parser.add_argument("--optimizer", default="fused",
                        choices=["fused", "bnb8", "fp8"])
    parser.add_argument("--offload", action="store_true",
                        help="its states to the host, by torchao")
    parser.add_argument("--bf16", choices=["all", "autocast"], required=True)
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args()


def of_torchao(name):
    for module in ("torchao.optim", "torchao.prototype.low_bit_optim"):
        try:
            return getattr(importlib.import_module(module), name)
        except ModuleNotFoundError:
            pass
    raise SystemExit(f"low_bit_step: no torchao with {name}")


def optimizer_class(args):
    if args.optimizer == "bnb8":
        import bitsandbytes

        return bitsandbytes.optim.AdamW8bit
    if args.optimizer == "fp8":
        return of_torchao("AdamWFp8")
    made = functools.partial(torch.optim.AdamW, fused=True)
    return functools.partial(of_torchao("CPUOffloadOptimizer"),
                             optimizer_class=made) if args.offload else made


def make_model(args):
    options = {"img_size": args.size} if args.size else {}
    model = timm.create_model(args.model, num_classes=45, **options)
    model.set_grad_checkpointing(args.checkpoint)
    if args.bf16 == "all":
        model.bfloat16()
    model.cuda().train()
    if args.compile:
        model.compile(fullgraph=True)
    return model


def main():
    args = parse()
    model = make_model(args)
    optimizer = optimizer_class(args)(model.parameters(), lr=1e-4,
                                      weight_decay=0)
    for _ in range(args.steps):
        images = torch.randn(args.batch, 3, 224, 224)
        labels = torch.zeros(args.batch, dtype=torch.int64)
        if args.bf16 == "all":
            images = images.bfloat16()
        with torch.autocast("cuda", torch.bfloat16,
                            enabled=args.bf16 == "autocast"):
            loss = torch.nn.functional.cross_entropy(
                model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print_peaks()


if __name__ == "__main__":
    main()
