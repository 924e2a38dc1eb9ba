# SPDX-License-Identifier: Apache-2.0
"""Host CPU time of GPT-2 small training steps (batch 8 x 1024, bf16 autocast,
AdamW): prints the minimum, the median and the number of steps, in ms."""
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "examples"))
from train_gpt2 import GPT2  # noqa: E402

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30
torch.manual_seed(0)
model = GPT2().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
times = []
for _ in range(steps + 3):
    start = time.process_time()
    tokens = torch.randint(50257, (8, 1025), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(tokens[:, :-1], tokens[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    times.append((time.process_time() - start) * 1e3)
times = times[3:]
print(f"{min(times):.3f} {statistics.median(times):.3f} {len(times)}")
