# SPDX-License-Identifier: Apache-2.0
"""A job that runs long: soak_job.py train STEPS [SECONDS] | peers

train: a transformer over a DataLoader with two workers; every 100 steps it
evaluates, writes a checkpoint, reads it back and prints a line of JSON: the
step, this process's resident MiB, PyTorch's allocated bytes. It ends after
STEPS, or after SECONDS of this machine's time.
peers: copies between all GPUs of this process, both ways, in streams of each;
prints how many, and what the GPUs hold afterwards."""
import json
import os
import sys
import tempfile

import torch
from torch import nn

EVERY = 100


class Text(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randint(0, 2000, (129,))


class Model(nn.Module):
    def __init__(self, width=256, layers=4):
        super().__init__()
        self.embed = nn.Embedding(2000, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(
            width, 4, 4 * width, batch_first=True) for _ in range(layers))
        self.out = nn.Linear(width, 2000)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def machine_seconds():
    """Of this machine: the clocks of Python are the simulated GPU's."""
    with open("/proc/uptime") as file:
        return float(file.read().split()[0])


def loss_of(model, rows):
    with torch.autocast("cuda", torch.bfloat16):
        scores = model(rows[:, :-1])
        return nn.functional.cross_entropy(scores.flatten(0, 1),
                                           rows[:, 1:].flatten())


def pause(model, optimizer, batches, path):
    """Evaluates, writes a checkpoint and reads it."""
    model.eval()
    with torch.no_grad():
        for _ in range(5):
            loss_of(model, next(batches).cuda(non_blocking=True)).item()
    model.train()
    torch.save({"model": model.state_dict(),
                "optimizer": optimizer.state_dict()}, path)
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])


def train(steps, seconds=float("inf")):
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batches = iter(torch.utils.data.DataLoader(
        Text(), batch_size=8, num_workers=2, pin_memory=True))
    start = machine_seconds()
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, steps + 1):
            loss = loss_of(model, next(batches).cuda(non_blocking=True))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % EVERY == 0:
                pause(model, optimizer, batches, f"{folder}/model.pt")
                print(json.dumps({
                    "step": step, "process": os.getpid(), "resident_mib": resident_mib(),
                    "allocated_bytes": torch.cuda.memory_allocated()}),
                    flush=True)
                if machine_seconds() - start > seconds:
                    break


def peers():
    count = torch.cuda.device_count()
    streams = [torch.cuda.Stream(i) for i in range(count)]
    parts = [torch.ones(1 << 20, device=f"cuda:{i}") for i in range(count)]
    copies = 0
    for _ in range(3):
        for i in range(count):
            for j in range(count):
                if i != j:
                    assert torch.cuda.can_device_access_peer(i, j)
                    with torch.cuda.stream(streams[i]):
                        got = parts[i].to(f"cuda:{j}", non_blocking=True)
                    got.record_stream(torch.cuda.current_stream(j))
                    copies += 1
    small = [torch.tensor([i], device=f"cuda:{i}") for i in range(count)]
    total = sum(x.to("cuda:0") for x in small)
    assert total.item() == count * (count - 1) // 2, total
    del got
    for i in range(count):
        torch.cuda.synchronize(i)
    print(json.dumps({"copies": copies, "gpus": count, "allocated_bytes": [
        torch.cuda.memory_allocated(i) for i in range(count)]}))


def main():
    if sys.argv[1] == "peers":
        peers()
    else:
        train(*map(int, sys.argv[2:]))


if __name__ == "__main__":
    main()
