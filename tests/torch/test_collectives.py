# SPDX-License-Identifier: Apache-2.0
"""--cluster on real PyTorch: DDP over two processes, and one rank of a world of
16 under FSDP2, alone and with tensor parallelism. Starts its own runs:
MEMSIM_BUILD."""
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

from harness import equal, main, test

BUILD = os.environ["MEMSIM_BUILD"]
# NCCL before 2.22 makes all its buffers at once.
EAGER = version("torch").startswith(("2.4.", "2.5.", "2.6."))
FIRST = 486  # MiB of an H100 that NCCL takes beside its buffers
WIDTH, LAYERS, STEPS = 1024, 4, 3
PARAMETERS = LAYERS * (WIDTH * WIDTH + WIDTH)

SCRIPT = f"""
import os, sys, torch, torch.distributed as dist, torch.nn as nn
world = int(sys.argv[1])
if world:  # the others are not here
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0,
                            world_size=world)
else:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
model = nn.Sequential(*[nn.Linear({WIDTH}, {WIDTH}) for _ in range({LAYERS})])
model = model.cuda()
if world:
    from torch.distributed.fsdp import fully_shard
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
else:
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range({STEPS}):
    model(torch.randn(8, {WIDTH}, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
if not world:
    x = torch.ones(2, 1024, device="cuda")
    y = torch.empty_like(x)
    dist.all_to_all([y[0], y[1]], [x[0], x[1]])
dist.destroy_process_group()
"""


# Rank 0 of a mesh of 4 x 4: groups that are split from the world's where a
# device is given, and that NCCL is asked for one by one where not.
MESH = f"""
import sys, torch, torch.distributed as dist, torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, RowwiseParallel, parallelize_module)
torch.cuda.set_device(0)
split = {{"device_id": torch.device("cuda:0")}} if int(sys.argv[1]) else {{}}
dist.init_process_group("nccl", store=dist.HashStore(), rank=0,
                        world_size=16, **split)
mesh = init_device_mesh("cuda", (4, 4), mesh_dim_names=("dp", "tp"))
model = nn.Sequential(nn.Linear({WIDTH}, 4 * {WIDTH}, bias=False), nn.ReLU(),
                      nn.Linear(4 * {WIDTH}, {WIDTH}, bias=False)).cuda()
parallelize_module(model, mesh["tp"], {{"0": ColwiseParallel(),
                                       "2": RowwiseParallel()}})
fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range({STEPS}):
    model(torch.randn(8, {WIDTH}, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def job(options, launcher, world, text=SCRIPT):
    with tempfile.TemporaryDirectory() as directory:
        script = os.path.join(directory, "train.py")
        report = os.path.join(directory, "report.json")
        with open(script, "w") as file:
            file.write(text)
        done = subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "--json", report, *options, "--",
             sys.executable, *launcher, script, str(world)],
            capture_output=True, text=True, timeout=300)
        equal((done.returncode, done.stdout), (0, ""))
        with open(report) as file:
            return json.load(file), done.stderr


def collectives(options, launcher, world, text=SCRIPT):
    report, told = job(options, launcher, world, text)
    return report["collectives"], told


def kind(rank, name):
    found = [k for k in rank["kinds"] if k["collective"] == name]
    equal(len(found), 1)
    return found[0]


@test
def ddp_reduces_every_gradient_once_a_step():
    told, text = collectives(
        ["--gpus", "2", "--cluster", "rtx2080ti"],
        ["-m", "torch.distributed.run", "--nproc-per-node", "2"], 0)
    assert "collectives on rtx2080ti, ranks 0 to 1, each" in text, text
    equal([r["rank"] for r in told["ranks"]], [0, 1])
    for rank in told["ranks"]:
        reduced = kind(rank, "all_reduce")
        equal(reduced["step"]["bytes"], 4 * PARAMETERS)
        equal(reduced["bytes"], STEPS * 4 * PARAMETERS)
        equal((reduced["nodes"], reduced["gpus_per_node"]), (1, 2))
        equal(reduced["members_assumed"], False)
        assert reduced["step"]["time_us"] > 0
        equal(len(rank["steps_time_us"]), STEPS)
        exchanged = [k for k in rank["kinds"]
                     if k["collective"] in ("alltoall", "sendrecv")]
        equal([(k["calls"], k["bytes"]) for k in exchanged], [(1, 8192)])


@test
def fsdp_gathers_twice_and_scatters_once_a_step():
    told, _ = collectives(["--cluster", "alps-gh200"], [], 16)
    rank, = told["ranks"]
    gathered, scattered = kind(rank, "all_gather"), kind(rank, "reduce_scatter")
    equal(scattered["step"]["bytes"], 4 * PARAMETERS)
    equal(gathered["step"]["bytes"], 2 * 4 * PARAMETERS)
    equal((gathered["ranks"], gathered["nodes"], gathered["gpus_per_node"]),
          (16, 4, 4))


@test
def a_mesh_s_groups_have_their_own_ranks_and_nodes():
    for split in (1, 0):
        told, _ = collectives(["--cluster", "alps-gh200"], [], split, MESH)
        rank, = told["ranks"]
        places = {k["collective"]: (k["ranks"], k["nodes"], k["gpus_per_node"],
                                    k["members_assumed"])
                  for k in rank["kinds"]}
        equal(places.pop("scatter"), (4, 1, 4, False))  # the parameters
        equal(places, {"all_reduce": (4, 1, 4, False),
                       "all_gather": (4, 4, 1, False),
                       "reduce_scatter": (4, 4, 1, False)})
        equal(kind(rank, "all_reduce")["step"]["bytes"], 4 * 8 * WIDTH)
        equal(kind(rank, "reduce_scatter")["step"]["bytes"],
              4 * 2 * 4 * WIDTH * WIDTH // 4)


@test
def a_communicator_takes_its_buffers():
    used = []
    for world in 1, 2:  # one rank calls nothing of NCCL's
        report, _ = job([], [], world)
        device = report["ranks"][0]["devices"][0]
        used.append(device["peak_used_bytes"] - device["peak_reserved_bytes"])
    # two ranks gather and scatter by the ring alone: 24 channels of 12 MiB, or
    # everything at once and 256 MiB for other machines before NCCL 2.22; and
    # what the first communicator takes
    assert abs(used[1] - used[0] - (FIRST + (544 if EAGER else 288)) * 2**20) \
        <= 64 * 2**20, used


@test
def an_all_to_all_takes_buffers_for_each_peer():
    used = []
    for collective in "all_reduce(x)", "all_to_all_single(torch.empty_like(x), x)":
        report, _ = job([], [], 8, f"""
import torch, torch.distributed as dist
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
x = torch.ones(8, 1024, device="cuda")
dist.{collective}
""")
        device, = report["ranks"][0]["devices"]
        used.append(device["peak_used_bytes"] - device["peak_reserved_bytes"])
    # seven peers of 32 channels; the others' ring, tree's end and NVLS as well
    others = 0 if EAGER else 288 + 240 + 256
    equal((used[1] - used[0]) // 2**20, 7 * 384 - others)


if __name__ == "__main__":
    main()
