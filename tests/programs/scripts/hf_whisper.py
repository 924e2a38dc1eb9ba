# SPDX-License-Identifier: Apache-2.0
"""transformers' Whisper, small: generate() with beams, of 30 s and of 60 s,
which it takes in two pieces: every way reaches max_new_tokens in each."""
import torch
import transformers

NEW = 32
SETTINGS = transformers.WhisperConfig(
    d_model=128, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=256,
    decoder_ffn_dim=256, encoder_attention_heads=4, decoder_attention_heads=4)
model = transformers.WhisperForConditionalGeneration(SETTINGS).cuda().eval()
model.generation_config = transformers.GenerationConfig(
    decoder_start_token_id=50258, eos_token_id=50257, pad_token_id=50257,
    bos_token_id=50257, max_length=448, no_timestamps_token_id=50363,
    is_multilingual=False)

for pieces in (1, 2):
    for batch in (1, 2) if pieces == 1 else (1,):
        sound = torch.randn(batch, 80, 3000 * pieces, device="cuda")
        heard = torch.ones(batch, 3000 * pieces, dtype=torch.long,
                           device="cuda")
        for how in ({"num_beams": 1}, {"num_beams": 3}, {"num_beams": 5},
                    {"num_beams": 2, "do_sample": True}):
            out = model.generate(
                sound, attention_mask=heard, max_new_tokens=NEW,
                return_timestamps=pieces > 1, **how)
            print(pieces, batch, how, tuple(out.shape), flush=True)
            assert out.shape == (batch, NEW * pieces), out.shape
print("all reach", NEW)
