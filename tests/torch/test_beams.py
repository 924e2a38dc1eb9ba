# SPDX-License-Identifier: Apache-2.0
# Libraries: old
"""Beam search of transformers 4.46, which chooses tokens by topk of what memsim
does not compute: no text ends early."""
import torch
from harness import Skip, equal, main, test

GPU = "cuda"


@test
def beams_are_as_long_as_they_can_be():
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        raise Skip("no transformers")
    for words, end in (256, 0), (1000, 2), (50257, 50256):
        model = GPT2LMHeadModel(GPT2Config(
            vocab_size=words, bos_token_id=end, eos_token_id=end, n_embd=64,
            n_layer=2, n_head=4)).to(GPU).eval()
        for batch in 1, 3:
            prompt = torch.full((batch, 8), 7, device=GPU)
            got = model.generate(prompt, num_beams=3, max_new_tokens=32,
                                 attention_mask=torch.ones_like(prompt),
                                 pad_token_id=end, do_sample=False)
            equal(tuple(got.shape), (batch, 40))


if __name__ == "__main__":
    main(carried=True)
