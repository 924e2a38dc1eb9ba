# SPDX-License-Identifier: Apache-2.0
"""transformers' generate(): every way reaches max_new_tokens."""
import torch
import transformers

NEW = 32
SMALL = {"vocab_size": 1000, "hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2}


def check(name, model, batch=2, **how):
    model = model.cuda().eval()
    words = torch.randint(5, 1000, (batch, 16), device="cuda")
    out = model.generate(words, max_new_tokens=NEW, pad_token_id=1,
                         attention_mask=torch.ones_like(words), **how)
    start = 1 if model.config.is_encoder_decoder else 16
    print(name, batch, tuple(out.shape), flush=True)
    assert out.shape == (batch, start + NEW), out.shape


def llama(eos=2):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        eos_token_id=eos, **SMALL))


for eos in (2, 0):
    for batch in (1, 4):
        check(f"greedy, end {eos}", llama(eos), batch, do_sample=False)
        check(f"sampling, end {eos}", llama(eos), batch, do_sample=True,
              top_k=20, top_p=0.9, temperature=0.8)
        check(f"beams, end {eos}", llama(eos), batch, num_beams=3)
check("static cache", llama(), cache_implementation="static",
      disable_compile=True)
check("assisted", llama(), 1, assistant_model=llama().cuda().eval())
check("mixtral", transformers.MixtralForCausalLM(transformers.MixtralConfig(
    num_local_experts=4, **SMALL)))
check("t5", transformers.T5ForConditionalGeneration(transformers.T5Config(
    vocab_size=1000, num_layers=2, decoder_start_token_id=0)))
print("all reach", NEW)
