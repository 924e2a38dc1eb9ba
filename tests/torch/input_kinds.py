# SPDX-License-Identifier: Apache-2.0
"""Trains KIND SIZE...: a step of each size, of a job whose inputs differ in one of
the usual ways (test_peak_law_kinds.py)."""
import sys, torch
from torch import nn
kind, numbers = sys.argv[1], [int(x) for x in sys.argv[2:]]
H = 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(H, 4 * H), nn.Linear(4 * H, H)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Text(nn.Module):
    """Of padded or packed tokens."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, H)
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, ids, offsets=None):
        return self.blocks(self.embed(ids)).sum()


class Experts(nn.Module):
    """Each token goes to two of eight experts."""

    def __init__(self):
        super().__init__()
        self.embed, self.gate = nn.Embedding(1000, H), nn.Linear(H, 8)
        self.experts = nn.ModuleList(Block() for _ in range(8))

    def forward(self, ids):
        x = self.embed(ids).flatten(0, 1)
        weights, chosen = self.gate(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            out.index_add_(0, token, expert(x[token])
                           * weights[token, place, None])
        return out.sum()


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(),
                                    nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())

    def forward(self, x):
        return self.layers(x).mean()


class Padded(nn.Module):
    """Takes a list of images, as detectors do."""

    def __init__(self):
        super().__init__()
        self.body = Images()

    def forward(self, images, targets):
        h, w = (max(i.shape[d] for i in images) for d in (1, 2))
        batch = torch.stack([nn.functional.pad(
            i, (0, w - i.shape[2], 0, h - i.shape[1])) for i in images])
        return self.body(batch)


def ids(*shape):
    return torch.randint(0, 1000, shape, device="cuda")


def image(h, w):
    return torch.rand(3, h, w, device="cuda")


def made(n):
    """The arguments of a step with a size of N."""
    if kind == "packed":
        return ids(1, n), torch.arange(0, n + 1, n // 4, device="cuda",
                                       dtype=torch.int32)
    if kind == "images":
        return torch.rand(4, 3, n, n + 32, device="cuda"),
    if kind == "detection":
        return ([image(n, n // 2), image(n // 2, n)], [{"boxes": ids(3, 4)}] * 2)
    if kind == "budget":
        return ids(max(1, 65536 // n), n + n % 96),
    return ids(8, n),


def run(kind, numbers):
    torch.manual_seed(0)
    model = {"packed": Text, "images": Images, "detection": Padded,
             "experts": Experts}.get(kind, Text)().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for n in numbers:
        for part in (n // 2, n) if kind == "micro" else (n,):
            model(*made(part)).backward()
        optimizer.step()
        optimizer.zero_grad()


run(kind, numbers)
