# SPDX-License-Identifier: Apache-2.0
"""Trains on a data loader, of the KIND that is asked for, for so many STEPS, and
prints what it saw (test_scan_data.py)."""
import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

kind, steps = sys.argv[1], int(sys.argv[2])
SAMPLES = 163 if kind == "drops" else 160
LONGEST, PLACE = 4000, 137
random.seed(0)
LENGTHS = [random.randint(400, 1000) for _ in range(SAMPLES)]
LENGTHS[PLACE] = LONGEST
reads = 0


class Texts(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        global reads
        reads += 1
        random.random(), torch.rand(1)  # as augmentations draw
        if kind == "fails" and i == 5:
            raise ValueError("no such sample")
        return {"ids": list(range(LENGTHS[i])), "label": i}


class Stream(IterableDataset):
    def __init__(self):
        self.at = 0

    def __iter__(self):
        data = Texts()
        while self.at < SAMPLES or kind == "endless":
            self.at += 1
            yield data[self.at % SAMPLES]


def padded(samples):
    longest = max(len(s["ids"]) for s in samples)
    ids = torch.zeros(len(samples), longest, dtype=torch.int64)
    for row, s in zip(ids, samples):
        row[:len(s["ids"])] = torch.tensor(s["ids"]) % 100
    return {"ids": ids, "label": torch.tensor([s["label"] for s in samples])}


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 256)
        self.layers = nn.Sequential(nn.Linear(256, 1024), nn.GELU(),
                                    nn.Linear(1024, 256))

    def forward(self, ids):
        return self.layers(self.embed(ids)).mean()


def loader():
    data = Stream() if kind in ("stream", "endless") else Texts()
    shuffles = not isinstance(data, IterableDataset)
    return DataLoader(data, batch_size=8, shuffle=shuffles, collate_fn=padded,
                      num_workers=2 if kind == "workers" else 0,
                      drop_last=kind == "drops")


def train():
    torch.manual_seed(1)
    model = Text().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, batch in enumerate(loader()):
        ids = batch["ids"].cuda()
        if kind == "shifted":
            ids = ids[:, :-1]
        if kind == "cut":
            ids = ids[:, :64]
        model(ids).backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, batch["label"].tolist(), tuple(ids.shape))
        if step + 1 == steps:
            break
    print(random.random(), torch.rand(1).item(), reads)


train()
