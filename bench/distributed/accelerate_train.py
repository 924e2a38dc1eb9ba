# SPDX-License-Identifier: Apache-2.0
"""Three steps with Hugging Face's Accelerate, in the form that its launcher's
options choose."""
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(4)))
optimizer = torch.optim.AdamW(model.parameters())
rows = torch.utils.data.DataLoader(torch.randn(4096, 512), batch_size=8)
model, optimizer, rows = accelerator.prepare(model, optimizer, rows)
for step, row in enumerate(rows):
    if step == 3:
        break
    with accelerator.autocast():
        loss = model(row).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
accelerator.wait_for_everyone()
print(accelerator.process_index, accelerator.num_processes,
      accelerator.distributed_type)
accelerator.end_training()
