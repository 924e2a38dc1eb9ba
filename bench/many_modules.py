# SPDX-License-Identifier: Apache-2.0
"""Two steps of a model of very many modules, a million where not said
otherwise: doc/attribution.md has what that costs.

    memsim run [--no-modules] -- python bench/many_modules.py [N]
"""
import resource
import sys
import time

import torch
import torch.nn as nn


class Tiny(nn.Module):
    def forward(self, x):
        return x.add_(1)


class Many(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.groups = nn.ModuleList(
            nn.ModuleList(Tiny() for _ in range(1000))
            for _ in range(count // 1000))
        self.last = nn.Linear(256, 256)

    def forward(self, x):
        for group in self.groups:
            for tiny in group:
                x = tiny(x)
        return self.last(x)


def main():
    model = Many(int(sys.argv[1]) if len(sys.argv) > 1 else 1000000).cuda()
    for step in range(2):
        model(torch.zeros(8, 256, device="cuda")).sum().backward()
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(f"step {step}: {time.process_time():.1f} s of CPU so far, "
              f"{used.ru_maxrss >> 10} MiB", flush=True)


if __name__ == "__main__":
    main()
