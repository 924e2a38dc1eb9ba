# SPDX-License-Identifier: Apache-2.0
"""One row of peft's comparison of methods (MetaMathQA, Llama 3.2 3B in bf16):
training steps of batches of some lengths, what is cached given back after every
second, and the most that was reserved at the end of a step. peft's own methods
(PYTHONPATH), random weights and tokens."""
import argparse
import json

import peft
import torch

import models

METHODS = {
    "lora-64": lambda: peft.LoraConfig(
        r=64, lora_alpha=64, target_modules=["q_proj", "v_proj"]),
    "lora-10-mlp": lambda: peft.LoraConfig(
        r=10, lora_alpha=20,
        target_modules=["gate_proj", "up_proj", "down_proj"]),
    "ia3": lambda: peft.IA3Config(task_type="CAUSAL_LM"),
    "vera": lambda: peft.VeraConfig(
        r=256, target_modules=["q_proj", "v_proj"]),
}
OTHER_LENGTHS = (200, 300)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=sorted(METHODS))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, required=True,
                        help="of the longest batch")
    return parser.parse_args()


def make_model(args):
    with torch.device("cuda"):
        model = models.make_language("llama-3.2-3b", dtype=torch.bfloat16)
    model = peft.get_peft_model(model, METHODS[args.method]())
    model.config.use_cache = False
    return model.to("cuda").train()


def train(args, model, optimizer):
    """The most that was reserved when a step had ended."""
    reserved = 0
    for i, length in enumerate([*OTHER_LENGTHS, args.length]):
        ids = torch.randint(0, 128000, (args.batch, length), device="cuda")
        optimizer.zero_grad()
        # While it runs, what the last one returned is held.
        output = model(input_ids=ids, attention_mask=torch.ones_like(ids),
                       labels=ids)
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        reserved = max(reserved, torch.cuda.memory_reserved())
        if i % 2:
            torch.cuda.empty_cache()
    return reserved


def main():
    args = parse()
    model = make_model(args)
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=1e-4)
    print(json.dumps({"torch": torch.__version__,
                      "reserved_bytes": train(args, model, optimizer)}))


if __name__ == "__main__":
    main()
