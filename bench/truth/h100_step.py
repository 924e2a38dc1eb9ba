# SPDX-License-Identifier: Apache-2.0
"""One job of the published H100 table: a few training steps, then the peaks.

What the job does is what the table's authors say of theirs
(sanketpurandare/mem-run-estimator, e2955a1c): the model is built on the card,
made float16 (HP) or left float32 (FP, MP), and trained with Adam on random
batches; MP runs the forward pass in autocast, and `--ac` checkpoints the
modules named in CHECKPOINTED. Peaks count from the first step.
"""
import argparse
import contextlib

import torch
from torch.distributed._composable import checkpoint
from torch.nn.attention import SDPBackend, sdpa_kernel

import models
from peaks import print_peaks

CHECKPOINTED = {
    "Block", "CLIPEncoderLayer", "GlobalResponseNormMlp",
    "LlamaMLP", "LlamaRMSNorm", "GemmaMLP", "GemmaRMSNorm",
    "GPT2Block", "T5LayerFF", "T5LayerNorm",
}
# The authors allow cuDNN's too, which torch 2.5.1 tries last; later versions
# try it first, so here it is left out.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=models.NAMES)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, default=0)
    parser.add_argument("--precision", choices=["FP", "MP", "HP"],
                        default="FP")
    parser.add_argument("--ac", action="store_true")
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


def make_optimizer(args, model):
    if args.model in models.VISION:
        import timm.optim

        return timm.optim.create_optimizer_v2(model, opt="adam")
    return torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=1e-4,
                            eps=1e-6)


def setup(args):
    dtype = torch.float16 if args.precision == "HP" else torch.float32
    torch.set_default_dtype(dtype)
    with torch.device("cuda:0"):
        model = models.make(args.model).to(dtype=dtype)
    if args.ac:
        for module in list(model.modules()):
            if type(module).__name__ in CHECKPOINTED:
                checkpoint(module, preserve_rng_state=False)
    return model.train(), make_optimizer(args, model)


def random_ids(vocabulary, *shape):
    return torch.randint(0, vocabulary, shape, device="cuda:0")


def random_images(batch, side):
    return torch.randn((batch, 3, side, side), device="cuda:0")


def language_batch(args, model):
    shape = model.config.vocab_size, args.batch, args.seq
    return {"input_ids": random_ids(*shape), "labels": random_ids(*shape)}


def vision_batch(args, model):
    images = random_images(args.batch, 224)
    return images, random_ids(model.num_classes, args.batch)


def clip_batch(args, model):
    images = random_images(args.batch, 336)
    ids = random_ids(model.clip.config.text_config.vocab_size, args.batch,
                     args.seq)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids),
            "pixel_values": images}


# Each returns the loss and whatever else their step holds on to until it ends.
def language_loss(model, batch):
    return model(**batch).loss, None


def vision_loss(model, batch):
    images, labels = batch
    output = model(images)
    return torch.nn.functional.cross_entropy(output, labels), output


def clip_loss(model, batch):
    return model(**batch), None


def functions(args):
    if args.model in models.LANGUAGE:
        return language_batch, language_loss
    if args.model in models.VISION:
        return vision_batch, vision_loss
    return clip_batch, clip_loss


def train_step(args, model, optimizer):
    batch_of, loss_of = functions(args)
    batch = batch_of(args, model)
    mixed = (torch.autocast("cuda") if args.precision == "MP" else
             contextlib.nullcontext())
    with sdpa_kernel(ATTENTION):
        with mixed:
            loss, _held = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    args = parse()
    model, optimizer = setup(args)
    torch.cuda.reset_peak_memory_stats()
    for _ in range(args.steps):
        train_step(args, model, optimizer)
    torch.cuda.synchronize()
    print_peaks("active")


if __name__ == "__main__":
    main()
