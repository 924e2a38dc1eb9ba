# SPDX-License-Identifier: Apache-2.0
"""Jobs of many ranks of which a few are processes, on real PyTorch. Starts its
own runs: MEMSIM_BUILD."""
import json
import os
import re
import subprocess
import sys
import tempfile

from harness import equal, main, test, waits

BUILD = os.environ["MEMSIM_BUILD"]
HEAD = """
import os, sys, time, torch, torch.distributed as dist, torch.nn as nn
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # before 2.6
    from torch.distributed._composable.fsdp import fully_shard
def equal(got, want):
    assert got == want, f"rank {rank}: {got!r}, not {want!r}"
"""

# A script that talks to its peers in every way, in a world of 128 with ranks 0,
# 1 and 127.
TALK = HEAD + """
dist.init_process_group("cpu:gloo,cuda:nccl")
last = rank == 127
x = torch.tensor([rank + 1], device="cuda")
dist.all_reduce(x)
equal(x.item(), 1 + 126 * 2 + 128)
out = [None] * world
dist.all_gather_object(out, rank)
equal(out, [0] + [1] * 126 + [127])
out = [None] * world if rank == 0 else None
dist.gather_object(rank, out, 0)
equal(out, [0] + [1] * 126 + [127] if rank == 0 else None)
out = ["hello"] if rank == 0 else [None]
dist.broadcast_object_list(out, 0)
equal(out, ["hello"])
out = [None]
dist.scatter_object_list(out, list(range(world)) if rank == 0 else None, 0)
equal(out, [rank])
even, host = dist.new_group(range(0, world, 2)), dist.new_group(backend="gloo")
dist.monitored_barrier(host)
dist.barrier(host)
dist.barrier()
x = torch.tensor([rank + 1.0])
dist.all_reduce(x, group=host)
equal(x.item(), 1 + 126 * 2 + 128)
parts = [torch.zeros(1) for _ in range(world)]
dist.all_gather(parts, torch.tensor([float(rank)]), group=host)
equal([p.item() for p in parts], [0.0] + [1.0] * 126 + [127.0])

from torch.distributed.device_mesh import init_device_mesh
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
mesh = init_device_mesh("cuda", (16, 8), mesh_dim_names=("dp", "tp"))
x = torch.tensor([rank + 1], device="cuda")
dist.all_reduce(x, group=mesh.get_group("tp"))
equal(x.item(), 128 * 8 if last else 1 + 7 * 2)
torch.use_deterministic_algorithms(True)  # empty() fills with the largest integer
x = torch.empty(2, dtype=torch.int64, device="cuda")
if rank % 8 == 0:
    x.fill_(5)
dist.broadcast(x, rank // 8 * 8, group=mesh.get_group("tp"))
equal(x.tolist(), [0, 0] if last else [5, 5])  # rank 120 is not run
torch.use_deterministic_algorithms(False)
model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(3)]).cuda()
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(4, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
weights, state = get_state_dict(model, optimizer)
dcp.save({"model": weights, "optimizer": state}, checkpoint_id=sys.argv[1])
dcp.load({"model": weights, "optimizer": state}, checkpoint_id=sys.argv[1])
dist.destroy_process_group()
"""

# Parameters whose last shard is smaller, and a rank 0 that does more.
TRAIN = HEAD + """
dist.init_process_group("nccl")
sizes = (64, 130, 257, int(sys.argv[2]))
model = nn.Sequential(*[nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
model.cuda()
if sys.argv[1] == "ddp":
    model = nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=True)
elif sys.argv[1] == "fsdp2":
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
elif sys.argv[1] == "fsdp1":
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 0:  # NCCL's watchdog, which keeps the first buckets, looks now
        time.sleep(0.5)
    total = loss.detach()
    dist.all_reduce(total, op=dist.ReduceOp.AVG)
    if rank == 0:
        log = torch.zeros(1 << 20, device="cuda")
        del log
        if sys.argv[1] == "ddp":
            torch.save(model.module.state_dict(), "checkpoint.pt")
dist.barrier()
dist.destroy_process_group()
"""

# Convolutions: their workspaces make a range of what is reserved.
CONVOLVES = HEAD + """
dist.init_process_group("nccl")
model = nn.Sequential(nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)).cuda()
for _ in range(3):
    model(torch.randn(4, 8, 64, 64, device="cuda")).sum().backward()
    dist.all_reduce(torch.ones(8, device="cuda"))
dist.destroy_process_group()
"""

# Only rank 1 could send it, and it is not run.
LONE = HEAD + """
dist.init_process_group("cpu:gloo,cuda:nccl")
out = [None]
if rank == 0:
    dist.recv_object_list(out, 1)
"""

# Rank 3 alone does what it does.
FROM_ONE = HEAD + """
dist.init_process_group("nccl")
out = [30, "x" * 700_000] if rank == 3 else [None, None]
dist.broadcast_object_list(out, src=3)
equal((out[0], len(out[1])), (30, 700_000))
out = [None]
dist.scatter_object_list(out, list(range(world)) if rank == 3 else None, src=3)
equal(out, [rank])
dist.barrier()
dist.destroy_process_group()
"""

# Each rank sends to the next one, so that all differ.
LONG_RING = HEAD + """
dist.init_process_group("nccl")
ours, theirs = torch.ones(8, device="cuda"), torch.ones(8, device="cuda")
for work in dist.batch_isend_irecv([
        dist.P2POp(dist.isend, ours, (rank + 1) % world),
        dist.P2POp(dist.irecv, theirs, (rank - 1) % world)]):
    work.wait()
torch.cuda.synchronize()
dist.destroy_process_group()
"""

RPC = HEAD + """
import torch.distributed.rpc as rpc
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world)
if rank == 0:
    equal(rpc.rpc_sync(f"worker{world - 1}", max, args=(3, 4)), 4)
rpc.shutdown()
"""

KEYS = HEAD + """
from torch.distributed.distributed_c10d import _get_default_store
dist.init_process_group("nccl")
store = _get_default_store()
store.set(f"key {rank}", "x")
before = store.num_keys()
equal(before > 0, True)
store.wait([f"key {i}" for i in range(world)])
"""

STORE = HEAD + """
from torch.distributed.distributed_c10d import _get_default_store
dist.init_process_group("nccl")
_get_default_store().get("from rank 1")
"""


OWN_STORE = HEAD + """
store = dist.TCPStore("127.0.0.1", 0, 1, True)
store.get("from rank 1")
"""

OTHER_WORLD = HEAD + """
dist.init_process_group("nccl", world_size=16, rank=rank)
"""

# Rank 3 calls one less.
SKIPPED = HEAD + """
dist.init_process_group("cpu:gloo,cuda:nccl")
for _ in range(2 - rank // 3):
    dist.all_reduce(torch.ones(1))
if rank == 3:
    import time
    time.sleep(600)
"""

DIES = HEAD + """
dist.init_process_group("nccl")
x = torch.ones(1 << 20, device="cuda")
if rank == 3:
    os.kill(os.getpid(), 9)
dist.all_reduce(x)
torch.cuda.synchronize()
import time
time.sleep(600)
"""


# 256 MiB that nobody looks at.
HOST = """
import resource, sys, torch
def mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before = mib()
layer = torch.nn.Linear(8192, 8192)
torch.nn.init.trunc_normal_(layer.weight)
small = torch.nn.Linear(16, 16)
assert small.weight.abs().min() > 0
print(mib() - before, float(layer.weight.abs().sum()) > 0)
layer.cuda()
"""


# A pipeline of 4 stages of 2 data-parallel ranks. The first stage has an
# embedding, the last a head and the loss, and the third one layer more.
PIPELINE = HEAD + """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (4, world // 4), mesh_dim_names=("pp", "dp"))
stage = mesh["pp"].get_local_rank()
layers = [nn.Linear(256, 256) for _ in range(2 + (stage == 2))]
if stage == 0:
    layers.insert(0, nn.Embedding(1000, 256))
if stage == 3:
    layers.append(nn.Linear(256, 1000))
model = nn.Sequential(*layers).cuda()
for layer in model:
    fully_shard(layer, mesh=mesh["dp"])
fully_shard(model, mesh=mesh["dp"])
pipeline = Schedule1F1B(
    PipelineStage(model, stage, 4, torch.device("cuda"),
                  group=mesh["pp"].get_group()), 8,
    loss_fn=lambda y, t: nn.functional.cross_entropy(
        y.flatten(0, 1), t.flatten()))
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.randint(1000, (16, 32), device="cuda")
for _ in range(2):
    inputs = (tokens,) if stage == 0 else ()
    pipeline.step(*inputs, **({"target": tokens} if stage == 3 else {}))
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""

# Experts on 4 ranks, to which a router that favours some sends tokens; 2 such
# groups.
EXPERTS = HEAD + """
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (world // 4, 4), mesh_dim_names=("dp", "ep"))
group, place = mesh["ep"].get_group(), mesh["ep"].get_local_rank()
expert = nn.Linear(128, 128).cuda()
for step in range(2):
    counts = torch.tensor([64 // (to + 1) for to in range(4)], device="cuda")
    got = torch.empty_like(counts)
    dist.all_to_all_single(got, counts, group=group)
    sends, receives = counts.tolist(), got.tolist()
    x = torch.randn(sum(sends), 128, device="cuda")
    y = torch.empty(sum(receives), 128, device="cuda")
    dist.all_to_all_single(y, x, receives, sends, group=group)
    expert(y).sum().backward()
dist.destroy_process_group()
"""


SAVE = """
import sys, torch
torch.save({"w": torch.full((64 << 20,), 3.0), "n": 5}, sys.argv[1])
"""
LOAD = """
import resource, sys, torch
def mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before = mib()
state = torch.load(sys.argv[1], map_location="cpu")
w = state["w"].cuda()
del w
moved = mib() - before
assert state["n"] == 5 and float(state["w"][-1]) == 3
torch.save(state, sys.argv[1] + ".pt")
assert float(torch.load(sys.argv[1] + ".pt")["w"][-1]) == 3
print(moved)
"""
# A model of 512 MiB on the host, copied and made bf16; a layer that somebody
# wrote to keeps its values.
COPIES = """
import copy, resource, torch, torch.nn as nn
def mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
layers = [nn.Linear(4096, 4096) for _ in range(8)]
before = mib()
layers[7].weight.data[4095, 4095] = 3
model = copy.deepcopy(nn.Sequential(*layers))
assert model[0].weight is not layers[0].weight and model[0].weight.requires_grad
for dtype in torch.bfloat16, torch.float64:
    model = model.to(dtype)
    for layer in model:
        assert layer.weight.dtype == layer.bias.dtype == dtype
        assert layer.weight.shape == (4096, 4096)
print(mib() - before)
assert model[7].weight[4095, 4095].item() == 3
assert not model[0].weight.any() and model[0].bias.any()
with torch.no_grad():
    model[0].weight.fill_(1)
assert model[0].weight.sum() == 1 << 24 and not model[1].weight.any()
"""

# As many bytes of objects as memsim brings through NCCL, and more.
OBJECTS = HEAD + """
dist.init_process_group("nccl")
for size in 10, 3_000_000, 9_000_000:
    def of(ranks):
        return [f"{r}{'x' * (size + r)}" for r in ranks]
    out, all_of = [None] * world, of([0, 0, 2, 2])
    for _ in range(2):
        dist.all_gather_object(out, *of([rank]))
        equal(out == all_of, True)
    got = [None] * world if rank == 0 else None
    dist.gather_object(*of([rank]), got, dst=0)
    equal(got == (all_of if rank == 0 else None), True)
    some = of([5, 6]) if rank == 0 else [None, None]
    dist.broadcast_object_list(some, src=0)
    equal(some == of([5, 6]), True)
    one = [None]
    dist.scatter_object_list(one, of(range(world)) if rank == 0 else None, 0)
    equal(one == of([rank]), True)
print("done")
dist.destroy_process_group()
"""
# Of stages 0 to 3 and 4 to 7: rank 5, which is not run, has what rank 1 asks for.
FROM_A_STAND_IN = HEAD + """
dist.init_process_group("nccl")
half = world // 2
mine = [dist.new_group([i, i + half]) for i in range(half)][rank % half]
tensor = torch.ones(4, device="cuda")
if rank < half:
    dist.send(tensor, rank + half, group=mine)
else:
    dist.recv(tensor, rank - half, group=mine)
for size in 10, 700_000, 10, 3_000_000:
    want = ["x" * size, size]
    out = list(want) if rank >= half else [None, None]
    dist.broadcast_object_list(out, rank % half + half, group=mine)
    equal(out == want, True)
dist.barrier()
dist.destroy_process_group()
"""
# Even ranks differ from odd ones, as a message shows: two of eight are run.
PAIRS = HEAD + """
dist.init_process_group("nccl")
two = [dist.new_group([i, i + 1]) for i in range(0, world, 2)][rank // 2]
one = torch.full((3,), rank % 2 + 1.0, device="cuda")
if rank % 2:
    dist.recv(torch.empty(3, device="cuda"), rank - 1, group=two)
else:
    dist.send(one, rank + 1, group=two)
total = one.clone()
dist.all_reduce(total)
out = torch.empty(world * 3, device="cuda")
dist.all_gather_into_tensor(out, one)
shares = torch.arange(float(world), device="cuda") * (rank % 2 + 1)
mine = torch.empty(1, device="cuda")
dist.reduce_scatter_tensor(mine, shares)
dist.barrier()  # before it, memsim begins again with the ranks that differ
equal(total.tolist(), [1.5 * world] * 3)
equal(out.tolist(), ([1.0] * 3 + [2.0] * 3) * (world // 2))
equal(mine.item(), 1.5 * world * rank)
dist.destroy_process_group()
"""
# Of 256 MiB, rank 0's half.
SAVE_PARTS = HEAD + """
import torch.distributed.checkpoint as dcp
dist.init_process_group("nccl")
part = {"w": torch.full((32 << 20,), 3.0), "n": torch.full((2,), 5.0)}
dcp.save({f"{k}{rank}": v for k, v in part.items()}, checkpoint_id=sys.argv[1])
dist.destroy_process_group()
"""
LOAD_PARTS = HEAD + """
import torch.distributed.checkpoint as dcp
def read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])
dist.init_process_group("nccl")
gpu = {"w0": torch.empty(32 << 20, device="cuda"), "n0": torch.empty(2)}
before = read()
dcp.load(gpu, checkpoint_id=sys.argv[1])
equal(read() - before < 8 << 20, sys.argv[2] == "mapped")
host = {"w0": torch.empty(32 << 20)}
dcp.load(host, checkpoint_id=sys.argv[1])
equal((host["w0"].min().item(), host["w0"].max().item()), (3, 3))
equal(gpu["n0"].tolist(), [5, 5])
dist.destroy_process_group()
"""


def run(text, directory, *options, argument="", status=0):
    script = os.path.join(directory, "train.py")
    with open(script, "w") as file:
        file.write(text)
    done = subprocess.run(
        [f"{BUILD}/bin/memsim", "run", *options, "--", sys.executable, script,
         *argument.split()], capture_output=True, text=True, timeout=600,
        cwd=directory)
    assert done.returncode == status, done.stderr
    return " ".join(done.stderr.split())


def events(run_directory):
    """By rank: what PyTorch's allocator did, without times and addresses."""
    found = {}
    for name in sorted(os.listdir(run_directory)):
        if not name.endswith(".trace"):
            continue
        text = subprocess.run(
            [f"{BUILD}/bin/memsim", "trace", os.path.join(run_directory, name)],
            capture_output=True, text=True, check=True,
            errors="replace").stdout
        rank = re.search(r"process .*? rank=(\d+)", text)
        found[int(rank[1]) if rank else 0] = re.findall(
            r"(block_alloc|block_free|segment_alloc|segment_free) .*?"
            r"(?:requested_)?bytes=(\d+)", text)
    return found


def classes(run_directory):
    """The representative of each rank."""
    stands = {}
    with open(os.path.join(run_directory, "ranks")) as file:
        for line in file:
            rank, members = line.split()
            for part in members.split(","):
                span, _, stride = part.partition(":")
                first, _, last = span.partition("-")
                for member in range(int(first), int(last or first) + 1,
                                    int(stride or 1)):
                    stands[member] = int(rank)
    return stands


def left_out_ranks_are_equal(script, world, ranks, argument=""):
    """All ranks as processes, and those that memsim chooses: RANKS."""
    with tempfile.TemporaryDirectory() as directory:
        made, peaks = {}, {}
        for name, listed in ("all", "all"), ("few", "auto"):
            kept = os.path.join(directory, name)
            said = run(script, directory, "--nproc-per-node", str(world),
                       "--ranks", listed, "-o", kept, "--json", kept + ".json",
                       argument=argument)
            assert name == "few" or "went on without" not in said, said
            with open(kept + ".json") as file:
                told = json.load(file)
            made[name] = events(kept)
            peaks[name] = {r["rank"]: [(d["peak_allocated_bytes"],
                                        d["peak_reserved_bytes"])
                                       for d in r["devices"]]
                           for r in told["ranks"]}
        stands = classes(kept)
    assert sorted(made["few"]) == ranks, (sorted(made["few"]), said[:1000])
    equal(sorted(stands), list(range(world)))
    for rank, stand in stands.items():
        assert len(made["all"][rank]) > 20, len(made["all"][rank])
        equal((rank, stand, made["all"][rank] == made["few"][stand]),
              (rank, stand, True))
    shown = {r: p for r, p in peaks["all"].items() if r in peaks["few"]}
    equal(shown, {r: peaks["few"][r] for r in shown})


@test
def ranks_that_are_not_run_send_what_those_with_their_places_send():
    with tempfile.TemporaryDirectory() as directory:
        kept = os.path.join(directory, "kept")
        run(PAIRS, directory, "--nproc-per-node", "8", "-o", kept)
        equal(classes(kept), {r: r % 2 * 7 for r in range(8)})


@test
def a_script_that_talks_to_127_others_ends():
    with tempfile.TemporaryDirectory() as directory:
        told = run(TALK, directory, "--nnodes", "16", "--nproc-per-node", "8",
                   "--write-through", argument=directory + "/checkpoint")
    assert ("all_gather_object: 125 of 128 objects are copies" in told), told
    assert re.search("ranks (0 to 127|1 to 126)", told), told


@test
def left_out_ranks_are_equal_ddp():
    left_out_ranks_are_equal(TRAIN, 4, [0, 1, 3], "ddp 63")


@test
def left_out_ranks_are_equal_fsdp2():
    """5 rows on 4 ranks: 2, 2, 1 and none."""
    left_out_ranks_are_equal(TRAIN, 4, [0, 1, 2, 3], "fsdp2 5")


@test
def left_out_ranks_are_equal_fsdp1():
    left_out_ranks_are_equal(TRAIN, 4, [0, 1, 3], "fsdp1 63")


@test
def stages_of_a_pipeline_are_found():
    left_out_ranks_are_equal(PIPELINE, 8, [0, 2, 4, 7])


@test
def experts_are_found():
    left_out_ranks_are_equal(EXPERTS, 8, [0, 1, 2, 3, 7])


@test
def each_node_s_gpu_has_its_range():
    with tempfile.TemporaryDirectory() as directory:
        run(CONVOLVES, directory, "-q", "--nnodes", "2", "--nproc-per-node",
            "1", "--ranks", "all", "--json", directory + "/out.json")
        with open(directory + "/out.json") as file:
            told = json.load(file)
        ranges = [rank["devices"][0].get("peak_reserved_range")
                  for rank in told["ranks"]]
    assert len(ranges) == 2 and ranges[0], ranges
    equal(ranges[1], ranges[0])


@test
def the_llama_example_runs_as_one_of_256_ranks():
    """Of more than 128 ranks PyTorch has several make ids for NCCL."""
    example = os.path.join(os.path.dirname(__file__), "../../examples",
                           "fsdp2_llama.py")
    with open(example) as file, tempfile.TemporaryDirectory() as directory:
        told = run(file.read(), directory, "--nnodes", "32",
                   "--nproc-per-node", "8", "--ranks", "0",
                   argument="--steps=2")
    assert "ranks 0 to 255" in told or "0-255" in told, told


@test
def nor_are_their_copies():
    done = subprocess.run(
        [f"{BUILD}/bin/memsim", "run", "-q", "--", sys.executable, "-c", COPIES],
        capture_output=True, text=True, timeout=600)
    equal((done.stderr, done.returncode), ("", 0))
    # A layer in four forms and a page of each other tensor
    assert int(done.stdout) < 384, done.stdout


@test
def large_host_tensors_are_not_initialized():
    for option, drawn in ("--no-modules", "False"), ("--real-init", "True"):
        done = subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "-q", option, "--", sys.executable,
             "-c", HOST], capture_output=True, text=True, timeout=600,
            check=True)
        grown, some = done.stdout.split()
        equal(some, drawn)
        equal(int(grown) > 128, drawn == "True")


@test
def a_checkpoint_is_not_read_in_full():
    """256 MiB, of which the script looks at one number."""
    with tempfile.TemporaryDirectory() as directory:
        path = directory + "/model.pt"
        run(SAVE, directory, "-q", argument=path)
        for option, mapped in ("--no-modules", True), ("--real-init", False):
            done = subprocess.run(
                [f"{BUILD}/bin/memsim", "run", "-q", option, "--",
                 sys.executable, "-c", LOAD, path], capture_output=True,
                text=True, timeout=600, check=True)
            equal((int(done.stdout) < 128, done.stdout),
                  (mapped, done.stdout))


@test
def nor_is_a_distributed_one():
    """torch.distributed.checkpoint's, of 128 MiB, to the GPU."""
    with tempfile.TemporaryDirectory() as directory:
        one = ["--nproc-per-node", "2", "--ranks", "0", "-q"]
        run(SAVE_PARTS, directory, *one, "--write-through",
            argument=directory + "/parts")
        for option, how in ("--no-modules", "mapped"), ("--real-init", "read"):
            run(LOAD_PARTS, directory, *one, option,
                argument=f"{directory}/parts {how}")


@test
def objects_of_any_size_go_through_nccl():
    with tempfile.TemporaryDirectory() as directory:
        run(OBJECTS, directory, "--nproc-per-node", "4", "--ranks", "0,2", "-q")


@test
def objects_of_any_size_come_from_the_rank_with_the_senders_places():
    with tempfile.TemporaryDirectory() as directory:
        told = run(FROM_A_STAND_IN, directory, "--nproc-per-node", "8")
        assert "running again with ranks 0,7" in told, told
        run(FROM_A_STAND_IN, directory, "--nproc-per-node", "8", "--ranks",
            "all", "-q")


@test
@waits
def what_only_a_missing_rank_could_say_is_refused():
    with tempfile.TemporaryDirectory() as directory:
        told = run(LONE, directory, "--nnodes", "4", "--ranks", "0,3", status=1)
        assert re.search(r"memsim: train.py:\d+: rank 0 waits for objects of "
                         "rank 1, which is not run; run it, too: "
                         "--ranks 0,1,3", told), told
        told = run(STORE, directory, "--nnodes", "4", "--ranks", "0,3",
                   status=1)
        assert re.search(r"train.py:\d+: rank [03] waits for .*from rank 1' in "
                         "the store, which no rank sets that is run",
                         told), told


@test
def the_rank_that_sends_objects_to_the_world_is_run():
    with tempfile.TemporaryDirectory() as directory:
        told = run(FROM_ONE, directory, "--nproc-per-node", "6", "-q")
        assert "running again with ranks 0-1,3,5" in told, told
        assert "ranks do what the others do not at train.py:" in told, told


@test
def no_job_ends_because_too_many_ranks_differ():
    with tempfile.TemporaryDirectory() as directory:
        told = run(LONG_RING, directory, "--nnodes", "64", "-q")
        assert "more ranks differ than the 32 that can be run" in told, told


@test
def rpc_runs_all_ranks():
    with tempfile.TemporaryDirectory() as directory:
        told = run(RPC, directory, "--nproc-per-node", "4", "-q")
        assert "running again with ranks 0-3" in told, told
        told = run(RPC, directory, "--nnodes", "64", "-q", status=1)
        assert re.search(r"memsim: train.py:\d+: RPC needs all ranks of the job, "
                         "and 3 of 64 are run; memsim runs at most 32",
                         told), told
        told = run(RPC, directory, "--nproc-per-node", "4", "--ranks", "0,3",
                   "-q", status=1)
        assert "2 of 4 are run; run them all: --ranks all" in told, told


@test
@waits
def the_keys_that_are_missing_are_named():
    with tempfile.TemporaryDirectory() as directory:
        told = run(KEYS, directory, "--nproc-per-node", "8", "--ranks", "0,7",
                   status=1)
        assert re.search(r"memsim: train.py:\d+: rank [07] waits for 'key 1', "
                         "'key 2', 'key 3' and 3 more in the store, which no "
                         "rank sets that is run", told), told


def bad(text, status, said, *options):
    """What a job of four ranks ends with, within the time of its start and
    30 s."""
    with tempfile.TemporaryDirectory() as directory:
        told = run(text, directory, "--nnodes", "4", "-o", directory + "/kept",
                   *options, status=status)
        assert re.search(said, told), told[:2000]
        return sorted(name for name in os.listdir(directory + "/kept")
                      if name.endswith(".trace"))


@test
def a_world_of_another_size_is_refused():
    bad(OTHER_WORLD, 1, r"train.py:\d+: rank 0 calls init_process_group with a "
        "world of 16 ranks, but --nnodes and --nproc-per-node make 4",
        "--ranks", "0")


@test
@waits
def a_store_of_the_script_s_own_does_not_hang():
    bad(OWN_STORE, 1, r"train.py:\d+: rank 0 waits for 'from rank 1' in the "
        "store, which no rank sets that is run", "--ranks", "0")


@test
@waits
def a_collective_that_one_does_not_call_does_not_hang():
    bad(SKIPPED, 1, r"train.py:\d+: rank 0 has waited for \d+ s for host "
        "tensors of other ranks; one of ranks 3 does not send them",
        "--ranks", "0,3")


@test
def a_rank_that_dies_stops_the_others():
    """And the traces are kept."""
    kept = bad(DIES, 125, r"rank 3 died of signal 9 \(Killed\); the other ranks "
               "are stopped", "--ranks", "0,3")
    equal(len(kept), 2)


main()
