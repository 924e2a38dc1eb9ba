# SPDX-License-Identifier: Apache-2.0
"""Training steps of an image model with mixed precision and SGD, as timm's
benchmark.py of 2022 did them: which batch still fits on a card. What PyTorch
has changed since is done as it was: attention in plain operations, an
optimizer that takes one tensor at a time, gradients zeroed and not freed; CUDA
11.3 loaded every kernel at once (rtx3090_2022.json)."""
import argparse
import os

os.environ["CUDA_MODULE_LOADING"] = "EAGER"

import timm
import timm.layers
import torch

from peaks import print_peaks


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="timm's name")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layout", choices=["nchw", "nhwc"], default="nhwc")
    return parser.parse_args()


def main():
    args = parse()
    torch.backends.cudnn.benchmark = True
    timm.layers.set_fused_attn(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = timm.create_model(args.model, pretrained=False)
    layout = torch.channels_last if args.layout == "nhwc" \
        else torch.contiguous_format
    model = model.to("cuda", memory_format=layout).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9,
                                nesterov=True, foreach=False)
    images = torch.randn(args.batch, 3, args.size, args.size, device="cuda")
    images = images.contiguous(memory_format=layout)
    labels = torch.zeros(args.batch, dtype=torch.int64, device="cuda")
    for _ in range(args.steps):
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cuda", torch.float16):
            output = model(images)
        if isinstance(output, tuple):
            output = output[0]
        torch.nn.functional.cross_entropy(output, labels).backward()
        optimizer.step()
    print_peaks()


if __name__ == "__main__":
    main()
