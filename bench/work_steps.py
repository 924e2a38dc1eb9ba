# SPDX-License-Identifier: Apache-2.0
"""Training steps of well-known models, for bench/work_coverage: what kernels
they launch, with realistic shapes.

    memsim run -o DIR -- python bench/work_steps.py gpt2 --precision amp
"""
import argparse

import torch
import torch.nn.functional as F


def transformers_model(name, batch, length):
    import transformers as tf

    configs = {
        "gpt2": lambda: (tf.GPT2LMHeadModel, tf.GPT2Config()),
        "llama": lambda: (tf.LlamaForCausalLM, tf.LlamaConfig(
            hidden_size=2048, intermediate_size=8192, num_hidden_layers=4,
            num_attention_heads=32, num_key_value_heads=8,
            vocab_size=128256)),
        "bert": lambda: (tf.BertForMaskedLM, tf.BertConfig()),
        "t5": lambda: (tf.T5ForConditionalGeneration, tf.T5Config(
            d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12,
            decoder_start_token_id=0)),
    }
    kind, config = configs[name]()
    model = kind(config)
    tokens = torch.randint(0, 1000, (batch, length), device="cuda")
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


def image_model(name, batch):
    if name == "vit":
        import timm
        model = timm.create_model("vit_base_patch16_224")
    elif name == "convnext":
        import timm
        model = timm.create_model("convnext_tiny")
    elif name == "resnet50-timm":
        import timm
        model = timm.create_model("resnet50")
    else:
        import torchvision
        model = getattr(torchvision.models, name)()
    dtype = torch.get_default_dtype()
    images = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype)
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    return model, lambda: F.cross_entropy(model(images), labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="gpt2, llama, bert, t5, vit, convnext, "
                        "resnet50-timm, or a name of torchvision's")
    parser.add_argument("--precision", choices=["fp32", "amp", "bf16"],
                        default="amp")
    parser.add_argument("--fused", action="store_true",
                        help="AdamW fused instead of foreach")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()

    if args.precision == "bf16":
        torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        if args.model in ("gpt2", "llama", "bert", "t5"):
            model, loss = transformers_model(args.model, args.batch,
                                             args.length)
        else:
            model, loss = image_model(args.model, args.batch)
    model.train()
    if args.channels_last:
        model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4,
                                  fused=args.fused,
                                  foreach=not args.fused)
    for _ in range(args.steps):
        with torch.autocast("cuda", dtype=torch.bfloat16,
                            enabled=args.precision == "amp"):
            value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
