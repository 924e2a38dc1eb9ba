# SPDX-License-Identifier: Apache-2.0
"""A recording of one GPU as a pipeline, against the pipelined script.

The kernels are long enough for the host to run ahead: the script makes events
until PyTorch's caches of them are full, and when that is depends on when its
watchdog looks, so that a step that waits for the host differs by microseconds
from run to run."""
import json
import pathlib
import sys
import tempfile

from harness import equal, main, memsim, test

MODEL = """
import os, torch
from torch import nn
import torch.nn.functional as F
LAYERS, MICRO = 4, 4
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(512)
        self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))
class Part(nn.Module):
    def __init__(self, first, end):
        super().__init__()
        self.embed = nn.Embedding(500, 512) if first == 0 else None
        self.blocks = nn.ModuleList(Block() for _ in range(first, end))
        self.head = nn.Linear(512, 500) if end == LAYERS else None
    def forward(self, x):
        with torch.autocast("cuda", torch.bfloat16):
            x = self.embed(x) if self.embed else x
            for block in self.blocks:
                x = block(x)
            return self.head(x) if self.head else x
def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
tokens, targets = torch.randint(500, (2, 16 * MICRO, 256), device="cuda")
"""
ONE = MODEL + """
model = Part(0, LAYERS).cuda()
adam = torch.optim.AdamW(model.parameters())
for step in range(3):
    for x, y in list(zip(tokens.chunk(MICRO), targets.chunk(MICRO)))[:2]:
        loss_of(model(x), y).backward()
    adam.step()
    adam.zero_grad()
"""
PIPELINE = MODEL + """
import torch.distributed as dist
from torch.distributed.pipelining import *
dist.init_process_group("nccl", device_id=torch.device(
    "cuda", torch.cuda.current_device()))
rank = dist.get_rank()
ends = %(ends)s
mine = range(rank, len(ends), 2)
parts = [Part(ends[s - 1] if s else 0, ends[s]).cuda() for s in mine]
stages = [PipelineStage(part, s, len(ends), torch.device("cuda"))
          for s, part in zip(mine, parts)]
schedule = Schedule%(name)s(
    stages if len(stages) > 1 else stages[0], MICRO, loss_fn=loss_of,
    scale_grads=False)
adam = torch.optim.AdamW(p for part in parts for p in part.parameters())
for step in range(3):
    schedule.step(*([tokens] if rank == 0 else []), return_outputs=False,
                  **({"target": targets} if rank == 1 else {}))
    adam.step()
    adam.zero_grad()
dist.destroy_process_group()
"""


def replay(folder, recording, *change):
    """The report, and of each rank the operations of the last step."""
    out, export = folder / "out.json", folder / "step.json"
    memsim("replay", "-q", recording, "--host-speed", "0", "--json", out,
           "--kineto", export, *change)
    ranks = []
    for rank in range(2):
        events = json.loads((folder / f"step-rank{rank}.json").read_text())[
            "traceEvents"]
        step = [e for e in events if e.get("cat") == "user_annotation"][-1]
        ranks.append([
            (round(e["ts"] - step["ts"], 3), e["name"], e["dur"])
            for e in sorted(events, key=lambda e: (e.get("ts", 0), e["name"]))
            if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
            and step["ts"] <= e["ts"] < step["ts"] + step["dur"]])
    return json.loads(out.read_text()), ranks


def record(folder, name, script, *options):
    (folder / f"{name}.py").write_text(script)
    memsim("run", "-q", "-o", folder / name, *options, "--", sys.executable,
           folder / f"{name}.py")
    return folder / name


@test
def stages_are_the_pipelined_script():
    """The same operations of both ranks, at the same nanoseconds: 1F1B with
    uneven stages, and two stages on each rank."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        one = record(scratch, "one", ONE)
        for name, ends, stages in (("1F1B", "[3, 4]", "3+1"),
                                   ("Interleaved1F1B", "[1, 2, 3, 4]", "2x2")):
            script = record(scratch, name,
                            PIPELINE % {"name": name, "ends": ends},
                            "--nnodes", "1", "--nproc-per-node", "2",
                            "--ranks", "all")
            run, expected = replay(scratch, script)
            changed, got = replay(scratch, one, "--change", f"stages={stages}",
                                  "--microbatches", "4")
            for mine, theirs in zip(got, expected):
                for a, b in zip(mine, theirs):
                    equal(a, b)
                equal(len(mine), len(theirs))
            equal(changed["time"]["step_ns"], run["time"]["step_ns"])
            equal({r["rank"]: r["steps"][-1]["bubble_ns"]
                   for r in changed["ranks"]},
                  {r["rank"]: r["steps"][-1]["bubble_ns"]
                   for r in run["ranks"]})
            equal(changed["verdict"], "unknown")


if __name__ == "__main__":
    main()
