# SPDX-License-Identifier: Apache-2.0
"""Advice against the truth: what the replay of a changed recording says a job
would take, and what the job takes when it is so changed. Starts runs of its own
with the programs of MEMSIM_BUILD. As a script it prints the table of
doc/advice.md: tests/torch/test_advice.py table"""
import functools
import json
import os
import subprocess
import sys
import tempfile

from harness import main, test

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MEMSIM = os.environ.get("MEMSIM_BUILD", f"{ROOT}/build") + "/bin/memsim"

# A GPT-2 of six blocks of width 384, or four stages of convolutions; torch's
# AdamW, or one that keeps its state in a type of its own choice, in 8 bits with a
# scale for each 256 of them, or an eighth of it.
JOB = """
import sys
import torch, torch.nn as nn, torch.nn.functional as F
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint
sys.path.insert(0, sys.argv[1])
import train_gpt2
model_name, precision, state, way, batch, around = sys.argv[2:]
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
class Adam8bit(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            s, n = self.state[p], p.numel()
            for name in () if s else ("mean", "square"):
                if n < 4096:
                    s[name] = torch.zeros_like(p)
                    continue
                s[name] = torch.zeros_like(p, dtype=torch.uint8)
                s[name + "_scale"] = torch.zeros(-(-n // 256), device=p.device)
            p.add_(p.grad, alpha=-1e-3)
class AdamShard(Adam):
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            s, n = self.state[p], -(-p.numel() // 8)
            for name in () if s else ("mean", "square"):
                s[name] = torch.zeros(n, device=p.device)
            p.view(-1)[:n].addcdiv_(s["mean"], s["square"], value=-1e-3)
def chunked(self, tokens, targets):
    x = self.token(tokens) + self.position(torch.arange(
        tokens.shape[1], device=tokens.device))
    for block in self.blocks:
        x = block(x)
    def part(x, y):
        return F.cross_entropy(self.head(x), y, reduction="sum")
    return sum(checkpoint(part, *each, use_reentrant=False) for each in zip(
        self.ln_f(x).flatten(0, 1).chunk(8), targets.flatten().chunk(8))
    ) / targets.numel()
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
    if way == "chunked":
        train_gpt2.GPT2.forward = chunked
    model = train_gpt2.GPT2(8192, 256, 384, 6, 6).cuda()
else:
    model = Convolutions().cuda()
if way.startswith("checkpoint"):
    for block in model.blocks:
        wrap(block)
if around == "compiled":
    for block in model.blocks:
        block.forward = torch.compile(block.forward, backend="aot_eager")
if around == "ddp":
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0,
                            world_size=1)
    model = nn.parallel.DistributedDataParallel(model)
if around == "fsdp2":
    from torch.distributed.fsdp import fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
if state in ("adamw", "fused", "single"):
    optimizer = torch.optim.AdamW(model.parameters(), **{
        "fused": {"fused": True}, "single": {"foreach": False}}.get(state, {}))
elif state == "int8":
    optimizer = Adam8bit(model.parameters())
elif state == "shard":
    optimizer = AdamShard(model.parameters(), torch.float32)
else:
    optimizer = Adam(model.parameters(), getattr(torch, state))
for _ in range(3):
    if model_name == "gpt2":
        x = torch.randint(8192, (int(batch), 257), device="cuda")
        x, y = x[:, :-1], x[:, 1:]
    else:
        x = torch.randn(int(batch), 3, 128, 128, device="cuda")
        y = torch.randint(10, (int(batch),), device="cuda")
    with torch.autocast("cuda", torch.bfloat16, precision == "bf16",
                        cache_enabled="uncached" not in way):
        with torch.set_grad_enabled("eval" not in way):
            loss = model(x, y)
    if "eval" in way:
        continue
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=way != "zero")
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


FOLDER = tempfile.TemporaryDirectory()
JOB_FILE = f"{FOLDER.name}/job.py"
with open(JOB_FILE, "w") as file:
    file.write(JOB)


@functools.lru_cache(None)
def run(model, precision, batch, around="", state="float32", way="plain",
        conf=""):
    """A run of JOB: where it is kept, and its figures."""
    place = tempfile.mkdtemp(dir=FOLDER.name)
    return place, device(memsim(
        "run", "-q", "--json", "-", "-o", place, "--", sys.executable,
        JOB_FILE, f"{ROOT}/examples", model, precision, state, way, str(batch), around,
        PYTORCH_CUDA_ALLOC_CONF=conf))


ALLOCATED, RESERVED = "peak_allocated_bytes", "peak_reserved_bytes"
CHECKPOINT = {"way": "checkpoint"}, "--what-if checkpoint=blocks", ALLOCATED
OF_DDP = {"way": "checkpoint"}, "--what-if checkpoint=module.blocks", ALLOCATED
BF16 = {"state": "bfloat16"}, "--what-if bf16-optimizer", ALLOCATED
INT8 = {"state": "int8"}, "--what-if 8bit-optimizer", ALLOCATED
SHARD = {"state": "shard"}, "--what-if shard-optimizer=8", ALLOCATED
FUSED = {"state": "fused"}, "--what-if fused-optimizer", ALLOCATED
CHUNKED = {"way": "chunked"}, "--what-if chunked-loss=8", ALLOCATED
NONE = {"way": "plain"}, "--what-if set-to-none", ALLOCATED
FSDP = {"around": "fsdp2"}, "--what-if fsdp=8", ALLOCATED
CONF = "expandable_segments:True"
EXPANDABLE = {"conf": CONF}, f"--alloc-conf {CONF}", RESERVED

# The change; the job. The optimizer's has a batch whose peak has its state.
CASES = {
    "checkpointing, GPT-2, bf16": (CHECKPOINT, ("gpt2", "bf16", 16)),
    "checkpointing, GPT-2, fp32": (CHECKPOINT, ("gpt2", "fp32", 16)),
    "checkpointing, convolutions, bf16": (CHECKPOINT,
                                          ("convolutions", "bf16", 16)),
    "checkpointing, GPT-2, bf16, DDP": (OF_DDP, ("gpt2", "bf16", 16, "ddp")),
    "checkpointing, GPT-2, bf16, FSDP2": (CHECKPOINT,
                                          ("gpt2", "bf16", 16, "fsdp2")),
    "checkpointing, GPT-2, bf16, compiled blocks": (
        CHECKPOINT, ("gpt2", "bf16", 16, "compiled")),
    "bf16 optimizer, GPT-2, bf16": (BF16, ("gpt2", "bf16", 4)),
    "8-bit optimizer, GPT-2, bf16": (INT8, ("gpt2", "bf16", 4)),
    "optimizer over 8 GPUs, GPT-2, bf16": (SHARD, ("gpt2", "bf16", 4)),
    "fused AdamW, GPT-2, bf16": (FUSED, ("gpt2", "bf16", 1, "", "adamw")),
    "fused AdamW for foreach=False, GPT-2, bf16": (
        FUSED, ("gpt2", "bf16", 1, "", "single")),
    "loss in 8 parts, GPT-2, bf16": (CHUNKED, ("gpt2", "bf16", 16)),
    "loss in 8 parts, GPT-2, fp32": (CHUNKED, ("gpt2", "fp32", 16)),
    "set_to_none, GPT-2, bf16": (NONE, ("gpt2", "bf16", 16, "", "adamw",
                                        "zero")),
    "no autocast cache, GPT-2, evaluation": (
        ({"way": "eval-uncached"}, "--what-if no-autocast-cache", ALLOCATED),
        ("gpt2", "bf16", 1, "", "adamw", "eval")),
    "no autocast cache, GPT-2, checkpointed": (
        ({"way": "checkpoint-uncached"}, "--what-if no-autocast-cache",
         ALLOCATED), ("gpt2", "bf16", 16, "", "adamw", "checkpoint")),
    "FSDP over 8 GPUs, GPT-2, bf16": (FSDP, ("gpt2", "bf16", 1, "", "adamw")),
    "FSDP over 8 GPUs, GPT-2, fp32": (FSDP, ("gpt2", "fp32", 4, "", "adamw")),
    "expandable segments, GPT-2, bf16": (EXPANDABLE, ("gpt2", "bf16", 16)),
}


def measure(case):
    """The peak as it is, as predicted with the change, and as it is then."""
    (change, words, peak), job = CASES[case]
    names = "model", "precision", "batch", "around", "state", "way"
    plainly = dict(zip(names, job))
    place, plain = run(**plainly)
    predicted = device(memsim("replay", "-q", "--json", "-", place,
                              *words.split()))
    return plain[peak], predicted[peak], run(**{**plainly, **change})[1][peak]


def error(plain, predicted, true):
    """Of the saving."""
    return abs(predicted - true) / max(plain - true, 1)


def check(case, most):
    plain, predicted, true = measure(case)
    if not (plain > true and error(plain, predicted, true) <= most):
        raise AssertionError(f"{case}: {plain} as it is, {predicted} "
                             f"predicted, {true} in truth")


@test
def checkpointing_of_a_transformer_under_autocast():
    check("checkpointing, GPT-2, bf16", 0.02)


@test
def checkpointing_of_convolutions_under_autocast():
    check("checkpointing, convolutions, bf16", 0.02)


@test
def checkpointing_under_ddp():
    check("checkpointing, GPT-2, bf16, DDP", 0.02)


@test
def checkpointing_under_fsdp2():
    check("checkpointing, GPT-2, bf16, FSDP2", 0.02)


@test
def checkpointing_of_compiled_blocks():
    check("checkpointing, GPT-2, bf16, compiled blocks", 0.02)


@test
def bf16_optimizer_state():
    check("bf16 optimizer, GPT-2, bf16", 0.02)


@test
def an_8_bit_optimizer_to_the_byte():
    check("8-bit optimizer, GPT-2, bf16", 0)


@test
def an_optimizer_over_8_gpus_to_the_byte():
    check("optimizer over 8 GPUs, GPT-2, bf16", 0)


@test
def a_fused_optimizer_to_the_byte():
    check("fused AdamW, GPT-2, bf16", 0)


@test
def a_loss_in_parts():
    check("loss in 8 parts, GPT-2, bf16", 0.1)


@test
def gradients_that_are_set_to_none_to_the_byte():
    check("set_to_none, GPT-2, bf16", 0)


@test
def autocast_without_a_cache_to_the_byte():
    check("no autocast cache, GPT-2, evaluation", 0)


@test
def fsdp_of_a_job_on_one_gpu():
    check("FSDP over 8 GPUs, GPT-2, bf16", 0.1)


@test
def expandable_segments_to_the_byte():
    check("expandable segments, GPT-2, bf16", 0)


def table():
    for case in CASES:
        figures = measure(case)
        cells = [f"{figure:,}".replace(",", " ") for figure in figures]
        print("|", " | ".join([case, *cells]),
              f"| {100 * error(*figures):.2f}% |")


if sys.argv[1:] == ["table"]:
    table()
else:
    main()
