# SPDX-License-Identifier: Apache-2.0
"""One row of LitGPT's tables of resources: the first step of finetuning on one
card in bf16-true, the micro-batch as long as the longest example of the data,
as its scripts arrange it. LitGPT's own model (PYTHONPATH), random weights."""
import argparse
import importlib

import lightning
import torch
from lightning.fabric.plugins import BitsandbytesPrecision
from litgpt.utils import chunked_cross_entropy

from peaks import print_peaks

LORA = dict(lora_r=8, lora_alpha=16, lora_dropout=0.05, lora_query=True,
            lora_value=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=["lora", "adapter"])
    parser.add_argument("model", help="LitGPT's name")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--quantize", choices=["nf4", "nf4-dq"])
    parser.add_argument("--steps", type=int, default=1)
    return parser.parse_args()


def make_fabric(args):
    if not args.quantize:
        return lightning.Fabric(devices=1, precision="bf16-true")
    return lightning.Fabric(devices=1, plugins=BitsandbytesPrecision(
        args.quantize, torch.bfloat16))


def make_model(args, fabric):
    method = importlib.import_module(f"litgpt.{args.method}")
    config = method.Config.from_name(
        args.model, **LORA if args.method == "lora" else {})
    with fabric.init_module(empty_init=False):
        model = method.GPT(config)
    getattr(method, f"mark_only_{args.method}_as_trainable")(model)
    model = fabric.setup_module(model)
    model.max_seq_length = args.length
    return model.train()


class OldMatmul(torch.autograd.Function):
    """bitsandbytes 0.41.1 made the whole weight again, both ways, and kept the
    input, which nothing reads (autograd/_functions.py, MatMul4Bit)."""

    @staticmethod
    def forward(ctx, x, packed, state, bias):
        from bitsandbytes.functional import dequantize_4bit

        packed = packed.view(-1, 1)
        ctx.weight = lambda: dequantize_4bit(packed, state).to(x.dtype)
        ctx.unread = x
        return torch.nn.functional.linear(x, ctx.weight(), bias)

    @staticmethod
    def backward(ctx, gradient):
        return torch.matmul(gradient, ctx.weight()), None, None, None


def use_old_matmul():
    import bitsandbytes

    bitsandbytes.matmul_4bit = (
        lambda x, packed, bias=None, quant_state=None:
        OldMatmul.apply(x, packed, quant_state, bias))


def make_optimizer(args, fabric, model):
    trained = [p for p in model.parameters() if p.requires_grad]
    if args.quantize:
        import bitsandbytes

        optimizer = bitsandbytes.optim.PagedAdamW(trained, lr=3e-4)
    else:
        optimizer = torch.optim.AdamW(trained, lr=3e-4)
    return fabric.setup_optimizers(optimizer)


def main():
    args = parse()
    torch.set_float32_matmul_precision("high")
    if args.quantize:
        use_old_matmul()
    fabric = make_fabric(args)
    fabric.launch()
    model = make_model(args, fabric)
    optimizer = make_optimizer(args, fabric, model)
    shape = args.batch, args.length
    for _ in range(args.steps):
        ids = torch.randint(0, 30000, shape).to(fabric.device)
        labels = torch.randint(0, 30000, shape).to(fabric.device)
        logits = model(ids, lm_head_chunk_size=128)
        logits[-1] = logits[-1][..., :-1, :]
        loss = chunked_cross_entropy(logits, labels[..., 1:])
        fabric.backward(loss / (128 // args.batch))
        optimizer.step()
        optimizer.zero_grad()
    print_peaks()


if __name__ == "__main__":
    main()
