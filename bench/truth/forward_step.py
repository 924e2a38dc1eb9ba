# SPDX-License-Identifier: Apache-2.0
"""One forward pass in bfloat16 and inference mode of a model with random
weights, the sixth of a process."""
import argparse

import torch
import transformers as hf

from peaks import print_peaks


def tokens(rows, length, *zeros):
    ones = torch.ones(rows, length, dtype=torch.int64)
    return {"input_ids": torch.randint(0, 30000, (rows, length)),
            "attention_mask": ones,
            **{name: torch.zeros_like(ones) for name in zeros}}


def pixels(rows, size):
    return {"pixel_values": torch.randn(rows, 3, size, size,
                                        dtype=torch.bfloat16)}


# Class, configuration of the model's card, inputs.
MODELS = {
    "bert-small": (hf.BertForMaskedLM, hf.BertConfig(
        hidden_size=512, num_hidden_layers=4, num_attention_heads=8,
        intermediate_size=2048), lambda: tokens(1, 141, "token_type_ids")),
    "vit-base": (hf.ViTModel, hf.ViTConfig(), lambda: pixels(4, 224)),
    "qwen1.5-0.5b": (hf.Qwen2Model, hf.Qwen2Config(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
        num_key_value_heads=16, intermediate_size=2816, vocab_size=151936),
        lambda: tokens(16, 559)),
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--steps", type=int, default=6)
    return parser.parse_args()


def main():
    args = parse()
    kind, config, inputs = MODELS[args.model]
    model = kind._from_config(config, torch_dtype=torch.bfloat16)
    model = model.eval().to("cuda")
    inputs = {name: x.to("cuda") for name, x in inputs().items()}
    with torch.inference_mode():
        for _ in range(args.steps):
            torch.cuda.reset_peak_memory_stats()
            model(**inputs)
    print_peaks()


if __name__ == "__main__":
    main()
