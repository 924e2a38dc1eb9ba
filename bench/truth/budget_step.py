# SPDX-License-Identifier: Apache-2.0
"""One row of a sweep of torch.compile's activation_memory_budget: forward and
backward of a small model of transformers in float32, the gradients resident."""
import argparse
import json

import torch
import transformers as hf
from torch._functorch import config as functorch

MODELS = {
    "llama": lambda: hf.LlamaModel(hf.LlamaConfig(
        hidden_size=256, intermediate_size=688, num_hidden_layers=32,
        num_attention_heads=8, num_key_value_heads=8, vocab_size=1000,
        use_cache=False)),
    "bert": lambda: hf.BertModel(hf.BertConfig(
        hidden_size=192, num_hidden_layers=32, num_attention_heads=3,
        intermediate_size=768, vocab_size=1000,
        max_position_embeddings=1024), add_pooling_layer=False),
}


class Sum(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids).last_hidden_state.sum()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--backend", help="of torch.compile; eager otherwise")
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args()


def main():
    args = parse()
    model = Sum(MODELS[args.model]()).to("cuda")
    ids = torch.randint(0, 1000, (2, 1024)).to("cuda")
    functorch.activation_memory_budget = args.budget
    step = model if not args.backend else torch.compile(
        model, backend=args.backend, dynamic=False)
    step(ids).backward()
    model.zero_grad(set_to_none=False)
    torch.cuda.empty_cache()
    resident = torch.cuda.memory_allocated()
    for _ in range(args.steps):
        torch.cuda.reset_peak_memory_stats()
        step(ids).backward()
        peak = torch.cuda.max_memory_allocated()
        model.zero_grad(set_to_none=False)
    print(json.dumps({
        "torch": torch.__version__,
        "allocated_bytes": resident,
        "peak_allocated_bytes": peak,
        "peak_over_allocated_bytes": peak - resident,
    }))


if __name__ == "__main__":
    main()
