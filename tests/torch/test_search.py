# SPDX-License-Identifier: Apache-2.0
"""memsim search with a real torch: the best configuration of a small model, with
and without what is left out."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

JOB = """
import argparse, torch
from torch.utils.checkpoint import checkpoint
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int)
parser.add_argument("--recompute", action="store_true")
args = parser.parse_args()
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Sequential(
            torch.nn.Linear(1024, 4096), torch.nn.GELU(),
            torch.nn.Linear(4096, 1024)) for _ in range(8)])
    def forward(self, x):
        for block in self.layers:
            x = checkpoint(block, x, use_reentrant=False) if args.recompute \
                else block(x)
        return x
net = Net().cuda()
adam = torch.optim.AdamW(net.parameters())
for step in range(3):
    net(torch.randn(args.batch, 1024, 1024, device="cuda")).sum().backward()
    adam.step()
    adam.zero_grad()
"""
SPACE = """
dominates = "recompute=true < recompute=false"
[names]
batch = [8, 128, 256]
recompute = [false, true]
[memory]
more = ["batch"]
less = ["recompute"]
[objective]
goal = "samples/s"
"""


def search(directory, *options):
    """(status, what it wrote, what it printed)."""
    done = subprocess.run(
        [MEMSIM, "search", "--gpu", "l4", "--host-speed", "0", "-o",
         f"{directory}/kept", "--json", f"{directory}/out.json", *options,
         f"{directory}/space.toml", "--", sys.executable, f"{directory}/job.py",
         "{args}"], capture_output=True, text=True, check=False, cwd=directory)
    path = pathlib.Path(directory, "out.json")
    return done.returncode, json.loads(path.read_text()), \
        done.stdout + done.stderr


@test
def the_best_is_that_of_all_points():
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "job.py").write_text(JOB)
        pathlib.Path(directory, "space.toml").write_text(SPACE)
        status, found, printed = search(directory)
        assert status == 0, printed
        kinds = {row["kind"] for row in found["left_out"]}
        assert "rule" in kinds, found["left_out"]
        assert "memory" in kinds, found["left_out"]
        status, whole, printed = search(directory, "--no-prune", "-j2")
        assert status == 0, printed
        equal(len(whole["trials"]), 6)
        equal(found["best"]["point"], whole["best"]["point"])
        by_point = {(row["point"]["batch"], row["point"]["recompute"]):
                    row for row in whole["trials"]}
        # What was left out for its memory is out of memory.
        for row in found["left_out"]:
            tried = by_point[row["point"]["batch"], row["point"]["recompute"]]
            if row["kind"] == "memory":
                equal(tried["verdict"], "oom")
            else:
                assert tried["samples_per_second"] <= \
                    whole["best"]["samples_per_second"]
        # Those that were tried before were not run again.
        equal(sum(row["known_before"] for row in whole["trials"]),
              len(found["trials"]))
        assert not os.listdir(f"{directory}/kept/trials")[0].endswith(".part")


if __name__ == "__main__":
    main()
