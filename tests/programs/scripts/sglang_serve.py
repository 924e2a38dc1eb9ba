# SPDX-License-Identifier: Apache-2.0
"""SGLang serves a prompt to a Llama of 4 layers with random weights:
sglang_serve.py eager|graphs

It checks the cache: the static share of the GPU's free memory, less the weights,
in tokens."""
import sys

import torch

import served_llama

SHARE = 0.5


def main(mode):
    import sglang
    served_llama.save("model")
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
    cache = tokens * served_llama.TOKEN_BYTES
    limit = SHARE * torch.cuda.get_device_properties(0).total_memory
    print("tokens of cache", tokens, "MiB", cache >> 20, "of", int(limit) >> 20)
    if limit - (1 << 30) < cache < limit:
        print("cache as computed")
    engine.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
