# SPDX-License-Identifier: Apache-2.0
"""Jobs: programs of their own, run under memsim, whose figures are those of the
JSON report."""
import json
import os
import subprocess
import sys
import tempfile

from harness import equal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.environ.get("MEMSIM_BUILD", f"{ROOT}/build")

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
def train(model, optimizer, steps=3, rows=512, width=256, **zero):
    for _ in range(steps):
        x = torch.randn(rows, width, device="cuda")
        F.mse_loss(model(x), x).backward()
        optimizer.step()
        optimizer.zero_grad(**zero)
def adam(model, **k):
    return torch.optim.AdamW(model.parameters(), **k)
class Block(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))
class Net(nn.Module):
    def __init__(self, blocks=3, checkpoint=None):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.register_buffer("scale", torch.ones(256))
        self.checkpoint = checkpoint
    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        for block in self.blocks:
            x = block(x) if self.checkpoint is None else checkpoint(
                block, x, use_reentrant=self.checkpoint)
        return x * self.scale
"""
TAIL = "\nprint(torch.cuda.max_memory_allocated())\n"


def run(code, *options, modules=True, check=True, quiet=True, before=""):
    """The report of CODE's run, and what its last line says; where it is not
    QUIET, all that memsim says. BEFORE runs before PyTorch is imported."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("MEMSIM_SESSION", "LD_PRELOAD", "MEMSIM_MODULES")}
    if before:
        env["MEMSIM_WARM"] = ""
    with tempfile.TemporaryDirectory() as folder:
        script, report = f"{folder}/job.py", f"{folder}/report.json"
        with open(script, "w") as file:
            file.write(before + HEAD + code + TAIL)
        command = [f"{BUILD}/bin/memsim", "run", "--json", report, *options]
        command += ["-q"] * quiet + ["--no-modules"] * (not modules)
        done = subprocess.run(command + ["--", sys.executable, script],
                              env=env, capture_output=True, text=True)
        if check and done.returncode:
            raise AssertionError(done.stderr[-3000:])
        with open(report) as file:
            report = json.load(file)
    if not quiet:
        return report, done.stderr
    return report, (done.stdout.strip().splitlines() or [""])[-1]


def device(code, *options, **how):
    return run(code, *options, **how)[0]["ranks"][0]["devices"][0]


def owners(report):
    return {m["name"]: m["categories"] for m in report["modules_at_peak"]}


def phases(report, step):
    return {p["phase"]: p for p in report["phases"] if p["step"] == step}


def rounded(numbers, size=4):
    """What the allocator gives for NUMBERS of SIZE bytes each."""
    return -(-numbers * size // 512) * 512


def check_sums(report):
    """Everything adds up to the peak, whichever way it is cut."""
    peak = report["peak_allocated_bytes"]
    equal(sum(report["categories_at_peak"].values()), peak)
    equal(sum(m["bytes"] for m in report["modules_at_peak"]), peak)
    equal(max(p["allocated"] for p in report["timeline"]), peak)
    blocks = [b for s in report["segments_at_peak"] for b in s["blocks"]]
    equal(sum(b["bytes"] for b in blocks if b["state"] == "allocated"), peak)
    for segment in report["segments_at_peak"]:
        free = [b["bytes"] for b in segment["blocks"] if b["state"] == "free"]
        equal(segment["allocated_bytes"], segment["bytes"] - sum(free))
        equal(segment["largest_cached_bytes"], max(free, default=0))
        equal(segment["cached_pieces"], len(free))
        equal(sum(b["bytes"] for b in segment["blocks"]), segment["bytes"])
    for part in report["timeline"] + report["phases"]:
        for size in part.get("categories", part.get("end_categories")).values():
            assert 0 < size <= peak, part


def check_phase_ends(report):
    """What modules held at the ends of phases and the phases' own figures."""
    outermost = [m for m in report["modules"] if "parent" not in m]
    for place, phase in enumerate(report["module_phases"]):
        held = sum(m["phase_end_bytes"][place] for m in outermost
                   if "phase_end_bytes" in m)
        assert 0 <= held <= report["phases"][phase]["end_bytes"], (phase, held)
