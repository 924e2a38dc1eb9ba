# SPDX-License-Identifier: Apache-2.0
"""The peak of each step of DistributedDataParallel, whose first bucket lives
until PyTorch's watchdog has seen that its all-reduce is done, or not
(doc/truth-distributed.md): first_bucket.py [SECONDS], a pause after the first
step."""
import sys
import time

import torch
import torch.distributed as dist

WIDTH = 1024
STEPS = 4


def make():
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(),
                                torch.nn.Linear(WIDTH, WIDTH)).cuda()
    return model


def step(model, optimizer, x):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def main():
    pause = float(sys.argv[1]) if len(sys.argv) > 1 else 0
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    x = torch.randn(8, WIDTH, device="cuda")
    first = make()  # what is done once is done before
    step(first, torch.optim.AdamW(first.parameters()), x)
    del first
    dist.barrier()
    model = torch.nn.parallel.DistributedDataParallel(
        make(), device_ids=[dist.get_rank()])
    optimizer = torch.optim.AdamW(model.parameters())
    peaks = []
    for number in range(STEPS):
        torch.cuda.reset_peak_memory_stats()
        step(model, optimizer, x)
        peaks.append(torch.cuda.max_memory_allocated())
        time.sleep(0 if number else pause)
    print(torch.__version__, "rank", dist.get_rank(), peaks, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
