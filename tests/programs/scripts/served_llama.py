# SPDX-License-Identifier: Apache-2.0
"""The model that serving engines are given: a Llama of 4 layers, settings alone."""
import transformers

LAYERS, HEADS, WIDTH = 4, 4, 64  # HEADS: of keys and values
TOKEN_BYTES = LAYERS * 2 * HEADS * WIDTH * 2  # of a cache in bf16


def save(folder):
    transformers.LlamaConfig(
        vocab_size=1000, hidden_size=512, intermediate_size=1024,
        num_hidden_layers=LAYERS, num_attention_heads=8,
        num_key_value_heads=HEADS, head_dim=WIDTH, dtype="bfloat16",
        max_position_embeddings=2048, architectures=["LlamaForCausalLM"]
    ).save_pretrained(folder)
