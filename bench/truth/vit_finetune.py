# SPDX-License-Identifier: Apache-2.0
"""Finetuning torchvision's ViT-L/16 to ten classes with Adam, as the logs of
rasbt/pytorch-memory-optim have it: plain, or by Lightning's Fabric in one of
its precisions. Training steps, then a batch of validation."""
import argparse

import torch
import torchvision

from peaks import print_peaks


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fabric", metavar="PRECISION",
                        help="32-true, 16-mixed, bf16-true; plain otherwise")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--init-only", action="store_true",
                        help="put it there in float32, then make it float16")
    parser.add_argument("--steps", type=int, default=4)
    return parser.parse_args()


def use_old_adam():
    """Until 2.1 the denominators were not made in place (torch/optim/adam.py,
    _multi_tensor_adam: `denom = torch._foreach_add(exp_avg_sq_sqrt, eps)`)."""
    step = torch._foreach_addcdiv_

    def addcdiv(parameters, averages, roots, *rest):
        step(parameters, averages, torch._foreach_add(roots, 0.0), *rest)

    torch._foreach_addcdiv_ = addcdiv


class Plain:
    """What Fabric does, in its words, where there is none."""

    @staticmethod
    def backward(loss):
        loss.backward()

    @staticmethod
    def setup(model, optimizer):
        return model, optimizer


def make_model():
    model = torchvision.models.vit_l_16(weights=None)
    model.heads.head = torch.nn.Linear(1024, 10)
    return model


def init_only():
    model = torchvision.models.vit_l_16(weights=None)
    model.to("cuda").to(torch.float16)


def setup(args):
    if not args.fabric:
        model = make_model().to("cuda")
        return Plain, model, torch.optim.Adam(model.parameters(), lr=5e-5)
    import lightning

    fabric = lightning.Fabric(accelerator="cuda", devices=1,
                              precision=args.fabric)
    fabric.launch()
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-5)
    return fabric, *fabric.setup(model, optimizer)


def batch_of(args):
    images = torch.randn(args.batch, 3, 224, 224)
    return images.to("cuda"), torch.zeros(args.batch, dtype=torch.int64,
                                          device="cuda")


def train(args, fabric, model, optimizer):
    for step in range(args.steps * args.accumulate):
        model.train()
        images, labels = batch_of(args)
        logits = model(images)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss = loss / args.accumulate
        if args.accumulate == 1:
            optimizer.zero_grad()
        fabric.backward(loss)
        if step % args.accumulate == 0:
            optimizer.step()
            if args.accumulate > 1:
                optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        images, _ = batch_of(args)
        model(images)


def main():
    args = parse()
    use_old_adam()
    if args.init_only:
        init_only()
    else:
        train(args, *setup(args))
    print_peaks()


if __name__ == "__main__":
    main()
