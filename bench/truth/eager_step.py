# SPDX-License-Identifier: Apache-2.0
"""Forward passes, or forward and backward without an optimizer, of a model of
transformers with eager attention in float32, what is cached given back before
each: which job NeuSight's measurements gave up."""
import argparse

import torch

import models
from peaks import print_peaks


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(models.LANGUAGE))
    parser.add_argument("mode", choices=["train", "infer"])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--head", choices=sorted(models.HEADS))
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args()


def train_step(model, ids):
    result = model(ids)
    logits = result["prediction_logits" if "prediction_logits" in result
                    else "logits"]
    loss = torch.nn.functional.cross_entropy(
        logits.view(-1, logits.size(-1)), ids.view(-1))
    del result, logits
    loss.backward()


def infer(model, ids):
    with torch.no_grad():
        model(ids)


def main():
    args = parse()
    with torch.device("cuda"):
        model = models.make_language(args.model, args.head,
                                     attn_implementation="eager")
    model.train(args.mode == "train")
    ids = torch.ones(args.batch, args.seq, dtype=torch.int64, device="cuda")
    step = train_step if args.mode == "train" else infer
    for _ in range(args.steps):
        torch.cuda.empty_cache()
        step(model, ids)
    print_peaks()


if __name__ == "__main__":
    main()
