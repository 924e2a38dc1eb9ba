# SPDX-License-Identifier: Apache-2.0
"""The ranks of real distributed jobs on one simulator: DDP with a slow rank, a
pipeline of three stages, and jobs whose ranks call different collectives.
Starts its own runs: MEMSIM_BUILD."""
import json
import os
import re
import subprocess
import sys
import tempfile

from harness import equal, main, test

BUILD = os.environ["MEMSIM_BUILD"]

START = """
import os, torch, torch.distributed as dist, torch.nn as nn
rank = int(os.environ["RANK"])
world = int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
"""

# Blocking sends: each rank waits for the next one.
RING = START + """
x = torch.ones(1 << 20, device="cuda")
dist.send(x, (rank + 1) % world)
dist.recv(x, (rank - 1) % world)
torch.cuda.synchronize()
"""

# The same in one group, after which each has both.
RING_BATCH = START + """
x, y = torch.ones(1 << 20, device="cuda"), torch.ones(1 << 20, device="cuda")
for work in dist.batch_isend_irecv([
        dist.P2POp(dist.isend, x, (rank + 1) % world),
        dist.P2POp(dist.irecv, y, (rank - 1) % world)]):
    work.wait()
torch.cuda.synchronize()
"""

RECEIVE_ALONE = START + """
x = torch.ones(1 << 20, device="cuda")
if rank == 0:
    dist.recv(x, 1)
"""

# Rank 1 leaves its loop too early.
LEAVES = START + """
x = torch.ones(1 << 20, device="cuda")
for step in range(3):
    if rank == 1 and step == 2:
        break
    dist.all_reduce(x)
torch.cuda.synchronize()
"""

# The same two groups in another order.
CROSSED = START + """
groups = [dist.new_group(list(range(world))) for _ in range(2)]
x = torch.ones(1024, device="cuda")
for group in groups if rank else groups[::-1]:
    dist.all_reduce(x, group=group)
torch.cuda.synchronize()
"""

DDP = START + """
model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(4)]).cuda()
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
rows = 4096 * (2 if rank == 1 else 1)
for _ in range(4):
    model(torch.randn(rows, 2048, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""

# GPipe by hand: each stage gets from the one before it, all microbatches
# forward, then all backward.
PIPELINE = START + """
MICRO = 4
model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    outs, ins = [], []
    for _ in range(MICRO):
        x = torch.randn(4096, 2048, device="cuda", requires_grad=True)
        if rank > 0:
            dist.recv(x.data, rank - 1)
        y = model(x)
        if rank + 1 < world:
            dist.send(y.data, rank + 1)
        ins.append(x)
        outs.append(y)
    for x, y in zip(ins, outs):
        grad = torch.ones_like(y)
        if rank + 1 < world:
            dist.recv(grad, rank + 1)
        y.backward(grad)
        if rank > 0:
            dist.send(x.grad, rank - 1)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""

WRONG_SIZE = START + """
x = torch.ones(1024 * (1 + rank), device="cuda")
dist.all_reduce(x)
torch.cuda.synchronize()
"""

WRONG_ORDER = START + """
x = torch.ones(1024, device="cuda")
if rank:
    dist.broadcast(x, 0)
    dist.all_reduce(x)
else:
    dist.all_reduce(x)
    dist.broadcast(x, 0)
torch.cuda.synchronize()
"""

MISSING = START + """
x = torch.ones(1024, device="cuda")
dist.all_reduce(x)
if rank == 0:
    dist.all_reduce(x)
torch.cuda.synchronize()
"""


def run(script, ranks, *options):
    """(exit status, JSON, what was printed) of SCRIPT on RANKS ranks."""
    with tempfile.TemporaryDirectory() as scratch:
        path, out = f"{scratch}/job.py", f"{scratch}/r.json"
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        done = subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "--gpus", str(ranks),
             "--host-speed", "0", "--json", out, *options, "--",
             sys.executable, "-m", "torch.distributed.run", "--standalone",
             "--nproc-per-node", str(ranks), path],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(out, encoding="utf-8") as file:
            return done.returncode, json.load(file), done.stdout


def last_steps(result):
    return [rank["steps"][-2] for rank in result["ranks"]]


@test
def ddp_waits_for_the_slow_rank():
    status, result, said = run(DDP, 2, "--check-collectives")
    equal(status, 0)
    fast, slow = last_steps(result)
    assert abs(fast["duration_ns"] / slow["duration_ns"] - 1) < 0.01, said
    assert slow["compute_ns"] > 1.7 * fast["compute_ns"], said
    assert fast["peers_ns"] > 0.3 * slow["compute_ns"], said
    equal(slow.get("peers_ns", 0), 0)
    equal(result["time"]["slowest_rank"], 1)
    assert "collective_faults" not in result, said


@test
def a_pipeline_has_its_bubble():
    status, result, said = run(PIPELINE, 3, "--check-collectives")
    equal(status, 0)
    steps = last_steps(result)
    ideal = 2 / (4 + 2)  # (stages - 1) / (microbatches + stages - 1)
    for step in steps:
        bubble = step.get("bubble_ns", 0) / step["duration_ns"]
        assert 0.6 * ideal < bubble < 1.1 * ideal, (bubble, ideal, said)


FSDP = START + """
from torch.distributed.fsdp import fully_shard
model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(2)]).cuda()
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


def replay(directory, *options):
    """(exit status, JSON or None, what was printed)"""
    out = f"{directory}.json"
    done = subprocess.run(
        [f"{BUILD}/bin/memsim", "replay", directory, "--host-speed", "0",
         "--json", out, *options],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    result = None
    if not done.returncode:
        with open(out, encoding="utf-8") as file:
            result = json.load(file)
    return done.returncode, result, done.stdout


def step_ns(directory, *options):
    status, result, said = replay(directory, *options)
    assert not status, said
    return result["time"]["step_ns"], said


# Data parallel between two nodes of eight: a ring for each local rank.
RINGS = START + """
for i in range(8):
    group = dist.new_group([i, i + 8])
    ours = group if rank % 8 == i else ours if i else None
model = nn.Linear(2048, 2048).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    model(torch.randn(64, 2048, device="cuda")).sum().backward()
    for p in model.parameters():
        dist.all_reduce(p.grad, group=ours)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


@test
def rings_of_a_node_share_its_network():
    with tempfile.TemporaryDirectory() as scratch:
        with open(f"{scratch}/train.py", "w", encoding="utf-8") as file:
            file.write(RINGS)
        done = subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "--nnodes", "2", "--nproc-per-node",
             "8", "--cluster", "aws-p4de", "--json", f"{scratch}/r.json", "--",
             sys.executable, f"{scratch}/train.py"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert not done.returncode, done.stdout
        with open(f"{scratch}/r.json", encoding="utf-8") as file:
            equal(json.load(file)["time"]["network_users"], 8)
        assert "shared by up to 8 collectives" in done.stdout, done.stdout


@test
def another_width_and_other_links():
    with tempfile.TemporaryDirectory() as scratch:
        equal(run(DDP.replace("rank == 1", "False"), 2, "-o",
                  f"{scratch}/d")[0], 0)
        cluster = ["--cluster", "aws-p4de", "--gpu", "h100-sxm-80gb"]
        narrow, _ = step_ns(f"{scratch}/d", *cluster)
        wide, said = step_ns(f"{scratch}/d", *cluster, "--dp", "512")
        fast, _ = step_ns(f"{scratch}/d", *cluster, "--dp", "512",
                          "--link", "inter=4x")
        assert narrow < fast < wide, (narrow, fast, wide)
        cluster += ["--host-speed", "0"]
        even, _ = step_ns(f"{scratch}/d", *cluster)
        slow, warned = step_ns(f"{scratch}/d", *cluster,
                               "--stragglers", "50%")
        other, _ = step_ns(f"{scratch}/d", *cluster, "--stragglers", "50%,3")
        assert len({even, slow, other}) == 3, (even, slow, other)
        equal(step_ns(f"{scratch}/d", *cluster, "--stragglers", "50%")[0], slow)
        assert "the slowest GPU takes" in " ".join(warned.split()), warned
        assert "averaged over 512 ranks, not 2" in " ".join(said.split()), said
        assert "/s by 512 ranks, each with its own batch" in said, said
        equal(run(FSDP, 2, "-o", f"{scratch}/f")[0], 0)
        status, _, said = replay(f"{scratch}/f", "--dp", "512")
        equal(status, 125)
        assert "are sharded over 2 ranks" in said, said


@test
def other_collectives_are_found():
    for script, fault in ((WRONG_SIZE, "size"), (WRONG_ORDER, "order"),
                          (MISSING, "ended")):
        status, result, said = run(script, 2, "--check-collectives")
        equal(status, 121)
        equal(result["collective_faults"][0]["fault"], fault)
        assert "rank 0 calls nccl" in " ".join(said.split()), said
        found = result["collective_faults"][0]
        both = ["stack"] if fault == "ended" else ["stack", "other_stack"]
        equal([name for name in found if name.endswith("stack")], both)
        for name in both:  # the call's line, at the module level of the script
            line = re.search(r"/job\.py:(\d+) <module>$", found[name][0])
            assert "dist." in script.splitlines()[int(line[1]) - 1], said
        assert "      rank 0   /" in said, said
    equal(run(WRONG_SIZE, 2)[0], 0)


@test
def what_never_ends_does_not_fit():
    for script, fault in ((RING, "endless"), (CROSSED, "endless"),
                          (RECEIVE_ALONE, "ended"), (LEAVES, "ended")):
        status, result, said = run(script, 2, "--check-collectives")
        equal(status, 121)
        equal(result["endless"], True)
        equal(result["collective_faults"][0]["fault"], fault)
        assert "memsim: never ends: " in said, said
        equal("deadlock: " in said, fault == "endless")
        equal("rank 1 ended with status 0 while rank 0 waits for it: call "
              in result["collective_faults"][0]["text"], fault == "ended")
        equal("a rank waits for one that has ended" in said, fault == "ended")
    status, result, said = run(RING, 2)
    equal(status, 122)
    equal(result["verdict"], "unknown")
    assert "a rank waits for what never comes" in said, said
    equal(len(result["collective_faults"]), 2)
    for rank, found in enumerate(result["collective_faults"]):
        equal((found["rank"], found["other_rank"]), (rank, 1 - rank))
        assert "waits for ever in ncclSend" in found["text"], found
        assert found["stack"][0].endswith(":9 <module>"), found
    status, result, said = run(RING_BATCH, 2, "--check-collectives")
    equal(status, 0)
    assert "endless" not in result, said


main()
