# SPDX-License-Identifier: Apache-2.0
"""SGLang serves a prompt to a Llama of 4 layers with random weights:
sglang_serve.py eager|graphs

It checks the cache: the static share of the GPU's free memory, less the weights,
in tokens."""
import sys

import torch
import transformers

LAYERS, HEADS, WIDTH = 4, 4, 64
SHARE = 0.5


def model():
    transformers.LlamaConfig(
        vocab_size=1000, hidden_size=512, intermediate_size=1024,
        num_hidden_layers=LAYERS, num_attention_heads=8,
        num_key_value_heads=HEADS, head_dim=WIDTH, dtype="bfloat16",
        max_position_embeddings=2048, architectures=["LlamaForCausalLM"]
    ).save_pretrained("model")


def main(mode):
    import sglang
    model()
    engine = sglang.Engine(
        model_path="model", load_format="dummy", skip_tokenizer_init=True,
        dtype="bfloat16", mem_fraction_static=SHARE, context_length=1024,
        attention_backend="triton", sampling_backend="pytorch",
        disable_cuda_graph=mode == "eager")
    found = engine.generate(input_ids=list(range(5, 25)), sampling_params={
        "max_new_tokens": 16, "ignore_eos": True, "temperature": 0})
    print("tokens", len(found["output_ids"]))
    info = engine.get_server_info()
    tokens = info["max_total_num_tokens"]
    cache = tokens * LAYERS * 2 * HEADS * WIDTH * 2
    limit = SHARE * torch.cuda.get_device_properties(0).total_memory
    print("tokens of cache", tokens, "MiB", cache >> 20, "of", int(limit) >> 20)
    if limit - (1 << 30) < cache < limit:
        print("cache as computed")
    engine.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
