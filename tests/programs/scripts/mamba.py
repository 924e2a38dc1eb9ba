# SPDX-License-Identifier: Apache-2.0
"""mamba-minimal's model trains; transformers' Mamba generates."""
import torch
import transformers

from model import Mamba, ModelArgs

model = Mamba(ModelArgs(d_model=768, n_layer=24, vocab_size=50277)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    x = torch.randint(0, 50277, (1, 128), device="cuda")
    torch.nn.functional.cross_entropy(model(x).flatten(0, 1),
                                      x.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
model = transformers.MambaForCausalLM(transformers.MambaConfig(
    num_hidden_layers=4)).cuda()
x = torch.randint(5, 1000, (1, 16), device="cuda")
out = model.generate(x, max_new_tokens=8)
assert out.shape == (1, 24), out.shape
print("8 tokens")
