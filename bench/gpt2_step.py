# SPDX-License-Identifier: Apache-2.0
"""Host CPU time of GPT-2 small training steps (batch 8 x 1024, bf16 autocast,
AdamW), in ms:

    gpt2_step.py [STEPS]               the median
    gpt2_step.py STEPS bare.so turns   steps by turns on bare stubs and not: the
                                       medians of both, and of the ratio of
                                       each pair (bench/bare.c, preloaded)
    gpt2_step.py STEPS bare.so bare    on bare stubs only, and
    gpt2_step.py STEPS bare.so full    not, both for callgrind to count
"""
import ctypes
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "examples"))
from train_gpt2 import GPT2  # noqa: E402

WARM_UP = 4

torch.manual_seed(0)
model = GPT2().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)


def step():
    start = time.process_time()
    tokens = torch.randint(50257, (8, 1025), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(tokens[:, :-1], tokens[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    return (time.process_time() - start) * 1e3


def by_turns(steps, switch):
    pairs = []
    for i in range(WARM_UP + steps):
        times = {}
        for bare in ((1, 0), (0, 1))[i % 2]:
            switch(bare)
            times[bare] = step()
        pairs.append((times[1], times[0]))
    del pairs[:WARM_UP]
    return [statistics.median(side) for side in zip(*pairs)] + [
        statistics.median(full / bare for bare, full in pairs)]


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    library = ctypes.CDLL(sys.argv[2]) if len(sys.argv) > 2 else None
    how = sys.argv[3] if library else ""
    if how == "turns":
        print(*(f"{value:.3f}" for value in by_turns(steps,
                                                     library.bare_switch)))
        return
    if how == "bare":
        library.bare_switch(1)
    for _ in range(WARM_UP):
        step()
    if library:
        library.bare_count(1)
    times = [step() for _ in range(steps)]
    if library:
        library.bare_count(0)
        os._exit(0)  # the rest is not worth valgrind's time
    print(f"{statistics.median(times):.3f}")


main()
