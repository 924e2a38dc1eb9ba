# SPDX-License-Identifier: Apache-2.0
"""Advice against the truth: what the replay of a changed recording says a job
would take, and what the job takes when it is so changed. Starts runs of its own
with the programs of MEMSIM_BUILD. As a script it prints the table of
doc/advice.md: tests/torch/test_advice.py table"""
import json
import os
import subprocess
import sys
import tempfile

from harness import main, test

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MEMSIM = os.environ.get("MEMSIM_BUILD", f"{ROOT}/build") + "/bin/memsim"

# A GPT-2 of six blocks of width 384, or four stages of convolutions; an AdamW
# that keeps its state in a type of its own choice.
JOB = """
import sys
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
sys.path.insert(0, sys.argv[1])
import train_gpt2
model_name, precision, state, way, batch = sys.argv[2:]
class Adam(torch.optim.Optimizer):
    def __init__(self, params, dtype):
        super().__init__(params, {})
        self.dtype = dtype
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            s = self.state[p]
            if not s:
                for name in "mean", "square":
                    s[name] = torch.zeros_like(p, dtype=self.dtype)
            s["mean"].mul_(0.9).add_(p.grad, alpha=0.1)
            s["square"].mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
            p.addcdiv_(s["mean"], s["square"].sqrt().add_(1e-8), value=-1e-3)
class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, 2, 1)
        self.blocks = nn.ModuleList(nn.Sequential(
            nn.Conv2d(64, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.ReLU())
            for _ in range(8))
        self.head = nn.Linear(64, 10)
    def forward(self, x, y):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return F.cross_entropy(self.head(x.mean((2, 3))), y)
def wrap(block):
    forward = block.forward
    block.forward = lambda *a: checkpoint(forward, *a, use_reentrant=False)
if model_name == "gpt2":
    model = train_gpt2.GPT2(8192, 256, 384, 6, 6).cuda()
else:
    model = Convolutions().cuda()
if way == "checkpoint":
    for block in model.blocks:
        wrap(block)
optimizer = Adam(model.parameters(), getattr(torch, state))
for _ in range(3):
    if model_name == "gpt2":
        x = torch.randint(8192, (int(batch), 257), device="cuda")
        x, y = x[:, :-1], x[:, 1:]
    else:
        x = torch.randn(int(batch), 3, 128, 128, device="cuda")
        y = torch.randint(10, (int(batch),), device="cuda")
    with torch.autocast("cuda", torch.bfloat16, precision == "bf16"):
        loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def memsim(*words, **variables):
    env = {k: v for k, v in os.environ.items()
           if k not in ("MEMSIM_SESSION", "LD_PRELOAD", "MEMSIM_MODULES")}
    done = subprocess.run([MEMSIM, *words], env={**env, **variables},
                          capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr[-3000:])
    return done.stdout


def device(report):
    return json.loads(report)["ranks"][0]["devices"][0]


class Jobs:
    """Runs of JOB, each kept in a folder of its own."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0
        with open(f"{folder}/job.py", "w") as file:
            file.write(JOB)

    def run(self, model, precision, state="float32", way="plain", batch=16,
            **variables):
        self.count += 1
        place = f"{self.folder}/{self.count}"
        return place, device(memsim(
            "run", "-q", "--json", "-", "-o", place, "--", sys.executable,
            f"{self.folder}/job.py", f"{ROOT}/examples", model, precision,
            state, way, str(batch), **variables))

    def predict(self, place, *words):
        return device(memsim("replay", "-q", "--json", "-", place, *words))


def compare(jobs, job, change, words, figure="peak_allocated_bytes",
            variables=None):
    """(job, figure as it is, predicted, true) with CHANGE."""
    place, plain = jobs.run(*job)
    predicted = jobs.predict(place, *words)
    _, true = jobs.run(*job, **change, **(variables or {}))
    return plain[figure], predicted[figure], true[figure]


def error(plain, predicted, true):
    """Of the saving."""
    return abs(predicted - true) / (plain - true)


CHECKPOINT = {"way": "checkpoint"}, ("--what-if", "checkpoint=blocks")
BF16 = {"state": "bfloat16"}, ("--what-if", "bf16-optimizer")
EXPANDABLE = {}, ("--alloc-conf", "expandable_segments:True")
VARIABLES = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}

CASES = [
    ("checkpointing", CHECKPOINT, "gpt2", "bf16"),
    ("checkpointing", CHECKPOINT, "gpt2", "fp32"),
    ("checkpointing", CHECKPOINT, "convolutions", "bf16"),
    ("bf16 optimizer", BF16, "gpt2", "bf16"),
    ("expandable segments", EXPANDABLE, "gpt2", "bf16"),
]


def measure(jobs, name, how, model, precision):
    change, words = how
    job = model, precision
    if name == "bf16 optimizer":  # a batch whose peak has the state in it
        change = {**change, "batch": 4}
        place, plain = jobs.run(*job, batch=4)
        predicted = jobs.predict(place, *words)
        _, true = jobs.run(*job, **change)
        key = "peak_allocated_bytes"
        return plain[key], predicted[key], true[key]
    if name == "expandable segments":
        return compare(jobs, job, change, words, "peak_reserved_bytes",
                       VARIABLES)
    return compare(jobs, job, change, words)


def check(case, most):
    with tempfile.TemporaryDirectory() as folder:
        plain, predicted, true = measure(Jobs(folder), *case)
    if not (plain > true and error(plain, predicted, true) <= most):
        raise AssertionError(f"{case[0]}: {plain} as it is, {predicted} "
                             f"predicted, {true} in truth")


@test
def checkpointing_of_a_transformer_under_autocast():
    check(CASES[0], 0.02)


@test
def checkpointing_of_convolutions_under_autocast():
    check(CASES[2], 0.02)


@test
def bf16_optimizer_state():
    check(CASES[3], 0.02)


@test
def expandable_segments_to_the_byte():
    with tempfile.TemporaryDirectory() as folder:
        plain, predicted, true = measure(Jobs(folder), *CASES[4])
    if predicted != true:
        raise AssertionError(f"{plain} as it is, {predicted} predicted, "
                             f"{true} in truth")


def table():
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs(folder)
        for case in CASES:
            figures = measure(jobs, *case)
            print(f"| {case[0]} | {case[2]}, {case[3]} | " +
                  " | ".join(f"{f:,}".replace(",", " ") for f in figures) +
                  f" | {100 * error(*figures):.2f}% |" if figures[0] != figures[2] else str(figures))


if sys.argv[1:] == ["table"]:
    table()
else:
    main()
