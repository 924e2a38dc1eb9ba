# SPDX-License-Identifier: Apache-2.0
"""Quantized layers and optimizers: quantized.py peft|bitsandbytes|torchao"""
import sys

import torch
import transformers

SMALL = {"vocab_size": 512, "hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2}


def train(model, optimizer, steps=2):
    for _ in range(steps):
        words = torch.randint(0, 512, (2, 64), device="cuda")
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def peft():
    import bitsandbytes
    from peft import LoraConfig, get_peft_model, \
        prepare_model_for_kbit_training
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)
                                  ).save_pretrained("model")
    for settings in ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
                      "bnb_4bit_use_double_quant": True},
                     {"load_in_8bit": True}):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            "model", device_map={"": 0},
            quantization_config=transformers.BitsAndBytesConfig(**settings))
        model = get_peft_model(
            prepare_model_for_kbit_training(model), LoraConfig(
                r=8, target_modules=["q_proj", "v_proj"]))
        train(model, bitsandbytes.optim.PagedAdamW8bit(
            [p for p in model.parameters() if p.requires_grad]))
        print("trained", *settings)


def bitsandbytes():
    import bitsandbytes as bnb
    kinds = {"AdamW8bit": {}, "PagedAdamW": {}, "Lion8bit": {},
             "AdEMAMix": {}, "SGD8bit": {"momentum": 0.9, "lr": 0.1}}
    for name, values in kinds.items():
        layers = torch.nn.Sequential(
            bnb.nn.Linear8bitLt(512, 512, has_fp16_weights=False),
            torch.nn.Linear(512, 512, dtype=torch.float16)).cuda()
        optimizer = getattr(bnb.optim, name)(layers[1].parameters(), **values)
        layers(torch.randn(8, 512, device="cuda").half()).sum().backward()
        optimizer.step()
    four = bnb.nn.Linear4bit(512, 512).cuda()
    print("outputs", four(torch.randn(8, 512, device="cuda").half()).shape)


def torchao():
    from torchao.float8 import convert_to_float8_training
    from torchao.optim import AdamW8bit
    from torchao.quantization import Int8WeightOnlyConfig, quantize_
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **SMALL)).cuda().bfloat16()
    convert_to_float8_training(
        model, module_filter_fn=lambda m, name: "head" not in name)
    train(model, AdamW8bit(model.parameters()))
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **SMALL)).cuda().bfloat16().eval()
    quantize_(model, Int8WeightOnlyConfig())
    print("logits", model(torch.ones(1, 16, device="cuda").long()).logits.shape)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
