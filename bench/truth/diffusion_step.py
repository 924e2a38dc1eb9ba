# SPDX-License-Identifier: Apache-2.0
"""A step of training Stable Diffusion 1.5's denoiser on random images in
float32 with Adam, its text and image encoders frozen: the second step's peaks,
as a fork of the H100 table's authors' program takes them."""
import argparse

import diffusers
import torch
import transformers as hf
from torch.distributed._composable import checkpoint
from torch.nn.attention import sdpa_kernel

from h100_step import ATTENTION
from peaks import print_peaks

# stable-diffusion-v1-5/stable-diffusion-v1-5; the rest are the defaults.
DENOISER = dict(sample_size=64, cross_attention_dim=768)
IMAGES = dict(block_out_channels=(128, 256, 512, 512), latent_channels=4,
              layers_per_block=2, sample_size=512,
              down_block_types=("DownEncoderBlock2D",) * 4,
              up_block_types=("UpDecoderBlock2D",) * 4)
TEXT = dict(hidden_size=768, intermediate_size=3072, num_attention_heads=12,
            num_hidden_layers=12, projection_dim=768)
CHECKPOINTED = {"BasicTransformerBlock", "ResnetBlock2D"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--ac", action="store_true")
    parser.add_argument("--steps", type=int, default=2)
    return parser.parse_args()


class Job:
    def __init__(self, args):
        with torch.device("cuda"):
            self.denoiser = diffusers.UNet2DConditionModel(**DENOISER)
            self.images = diffusers.AutoencoderKL(**IMAGES)
            self.text = hf.CLIPTextModel._from_config(hf.CLIPTextConfig(**TEXT))
            self.scheduler = diffusers.DDPMScheduler()
        self.optimizer = torch.optim.Adam(
            self.denoiser.parameters(), lr=1e-4, weight_decay=1e-4, eps=1e-6)
        if args.ac:
            for module in list(self.denoiser.modules()):
                if type(module).__name__ in CHECKPOINTED:
                    checkpoint(module, preserve_rng_state=False)
        self.pixels = torch.randn(args.batch, 3, args.size, args.size,
                                  device="cuda")
        self.times = torch.randint(0, 50, (args.batch,), device="cuda")
        self.ids = torch.randint(0, 49408, (args.batch, 77), device="cuda")
        self.unused = torch.randint(0, 49408, (args.batch, 77), device="cuda")

    def step(self):
        with torch.no_grad():
            words = self.text(self.ids).last_hidden_state
            latents = self.images.encode(
                self.pixels).latent_dist.sample() * 0.18215
        noise = torch.randn_like(latents)
        noisy = self.scheduler.add_noise(latents, noise, self.times)
        with sdpa_kernel(ATTENTION):
            guess = self.denoiser(encoder_hidden_states=words,
                                  timestep=self.times, sample=noisy).sample
            loss = torch.nn.functional.mse_loss(guess, latents)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


def main():
    args = parse()
    job = Job(args)
    for _ in range(args.steps):
        torch.cuda.reset_peak_memory_stats()
        job.step()
    torch.cuda.synchronize()
    print_peaks("active")


if __name__ == "__main__":
    main()
