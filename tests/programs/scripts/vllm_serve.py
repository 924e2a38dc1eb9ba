# SPDX-License-Identifier: Apache-2.0
"""vLLM serves a prompt to a Llama of 4 layers with random weights:
vllm_serve.py eager|compiled

It checks the cache: the share of the GPU's memory that it may use, less the
weights and at most 1 GiB of activations, in pages of 16 tokens."""
import os
import sys

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
# Its wheel has DeepGEMM for one version of Python only.
os.environ["VLLM_USE_DEEP_GEMM"] = "0"
import torch
from vllm import LLM, SamplingParams

import served_llama

PAGE = 16  # tokens
SHARE = {"eager": 0.9, "compiled": 0.5}


def serve(mode):
    served_llama.save("model")
    return LLM(model="model", load_format="dummy", skip_tokenizer_init=True,
               enforce_eager=mode == "eager", max_model_len=1024,
               gpu_memory_utilization=SHARE[mode], dtype="bfloat16")


def main(mode):
    llm = serve(mode)
    found = llm.generate(
        [{"prompt_token_ids": list(range(5, 25))}],
        SamplingParams(max_tokens=16, ignore_eos=True, detokenize=False))
    print("tokens", len(found[0].outputs[0].token_ids))
    blocks = llm.llm_engine.vllm_config.cache_config.num_gpu_blocks
    cache = blocks * PAGE * served_llama.TOKEN_BYTES
    limit = SHARE[mode] * torch.cuda.get_device_properties(0).total_memory
    print("blocks", blocks, "MiB", cache >> 20, "of", int(limit) >> 20)
    if limit - (1 << 30) < cache < limit:
        print("cache as computed")


if __name__ == "__main__":
    main(sys.argv[1])
