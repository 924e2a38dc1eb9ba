# SPDX-License-Identifier: Apache-2.0
"""torch.distributed._tools.MemTracker on the model of examples/train_gpt2.py,
two steps, on the CPU stand-in device under FakeTensorMode: prints the peak."""
import os
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "examples"))
from train_gpt2 import GPT2  # noqa: E402

with FakeTensorMode():
    model = GPT2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=True)
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        for step in range(2):
            tokens = torch.randint(50257, (8, 1025))
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(tokens[:, :-1], tokens[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step == 0:
                tracker.reset_mod_stats()
print(tracker.get_tracker_snapshot("peak"))
