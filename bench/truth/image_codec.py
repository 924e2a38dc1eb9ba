# SPDX-License-Identifier: Apache-2.0
"""One image through the decoder or the encoder of Qwen-Image (diffusers'
AutoencoderKLQwenImage with its defaults and random weights) in float16, without
gradients, after the cache was emptied."""
import argparse

import diffusers
import torch

from peaks import print_peaks

LATENTS, SMALLER = 16, 8  # channels of the latents; pixels to one of them


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["decode", "encode"])
    parser.add_argument("size", metavar="HxW")
    return parser.parse_args()


def make():
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        model = diffusers.AutoencoderKLQwenImage().eval()
    torch.set_default_dtype(torch.float32)
    return model


@torch.inference_mode()
def run(model, part, height, width):
    def randn(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.float16)

    if part == "decode":
        return model.decode(randn(1, LATENTS, 1, height // SMALLER,
                                  width // SMALLER), return_dict=False)[0]
    image = randn(1, 3, 1, height, width)
    return model.encode(image).latent_dist.mode()


def main():
    args = parse()
    model = make()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    run(model, args.part, *map(int, args.size.split("x")))
    torch.cuda.synchronize()
    print_peaks()


if __name__ == "__main__":
    main()
