# SPDX-License-Identifier: Apache-2.0
"""What a launch of a large CUDA graph costs: memsim run -q -- python this.

A training step of 24 encoder layers, eagerly and as a graph; medians."""
import statistics
import time

import torch
import torch.nn as nn


def seconds(function, times):
    took = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        took.append(time.perf_counter() - start)
    return statistics.median(took)


model = nn.TransformerEncoder(nn.TransformerEncoderLayer(
    256, 8, 1024, batch_first=True), 24).cuda()
optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
x = torch.randn(8, 128, 256, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    optimizer.step()


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    eager = seconds(step, 5)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    step()
launch = seconds(graph.replay, 200)
print(f"eager {eager * 1e3:.1f} ms, launch {launch * 1e6:.1f} us: "
      f"1 to {eager / launch:.0f}")
