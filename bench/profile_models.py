# SPDX-License-Identifier: Apache-2.0
"""Models whose inference on an H100 was profiled and published (TraceLens, MIT):

    memsim run -o run -- python bench/profile_models.py bert
    memsim diff run h100_gaunernst_bert-small-uncased__1016001.json.gz
    memsim run -o run -- python bench/profile_models.py vit
    memsim diff run h100_Falconsai_nsfw_image_detection__1016002.json.gz

The classes, the shapes and the type are those of the operators in the profiles;
weights are random. Needs transformers; the profiles are of CUDA 12.4."""
import sys

import torch
import transformers


def bert():
    config = transformers.BertConfig(hidden_size=512, num_hidden_layers=4,
                                     num_attention_heads=8,
                                     intermediate_size=2048)
    tokens = torch.ones(1, 141, dtype=torch.long)
    return transformers.BertForMaskedLM(config), {
        "input_ids": tokens, "attention_mask": tokens,
        "token_type_ids": 0 * tokens}


def vit():
    images = torch.zeros(4, 3, 224, 224, dtype=torch.bfloat16)
    return (transformers.ViTModel(transformers.ViTConfig()),
            {"pixel_values": images})


def main():
    model, inputs = {"bert": bert, "vit": vit}[sys.argv[1]]()
    model = model.to(torch.bfloat16).cuda().eval()
    inputs = {name: value.cuda() for name, value in inputs.items()}
    for _step in range(6):
        with torch.inference_mode():
            model(**inputs)
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
