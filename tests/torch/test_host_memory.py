# SPDX-License-Identifier: Apache-2.0
# The host's memory of runs, by what their scripts say that they have. It starts
# runs of its own.
import contextlib
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, Skip, equal, main, test

MIB = 1 << 20

PINNED = """
import torch
keep = [torch.empty(9 << 17, dtype=torch.uint8).pin_memory()
        for _ in range(3)]                               # 1.125 MiB each
torch.ones(1, device="cuda")
"""

REGISTERED = """
import torch
kept = torch.ones(5 << 20, dtype=torch.uint8)
torch.ones(1, device="cuda")
torch.cuda.cudart().cudaHostRegister(kept.data_ptr(), 5 << 20, 0)
"""

TENSORS = """
import sys, torch
kept = torch.zeros(64 << 20, dtype=torch.uint8)
for _ in range(3):
    torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8)   # nobody touches it
torch.ones(1, device="cuda")
"""

# What the C library keeps of freed blocks is resident, and a tensor's again later.
AGAIN = """
import sys, time, torch
torch.ones(1, device="cuda")
def blocks(count):
    return [torch.ones(8 << 18) for _ in range(count)]       # 8 MiB each
blocks(1)                             # from now on such blocks are kept
kept = blocks(40)
above = torch.ones(1 << 17)           # nothing is given back to the kernel
del kept
time.sleep(1.2)                       # the resident pages are looked at again
one = torch.ones(1 << 18)
kept = blocks(40)
with open("/proc/self/status") as status, open(sys.argv[1], "w") as said:
    print(next(line.split()[1] for line in status if "VmHWM" in line), file=said)
"""

CHECKPOINT = """
import sys, torch
what, path = sys.argv[1:]
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, bias=False)
                              for _ in range(8)])        # 128 MiB
if what == "save":
    torch.save(model.state_dict(), path)
else:
    state = torch.load(path, map_location=what, weights_only=True)
    model.load_state_dict(state)
    del state
torch.ones(1, device="cuda")
"""

WORKERS = """
import torch
from torch.utils.data import DataLoader, Dataset
class Images(Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        return torch.ones(3, 512, 512)
model = torch.nn.Conv2d(3, 8, 3).cuda()
for batch in DataLoader(Images(), batch_size=4, num_workers=2):
    model(batch.cuda()).sum().backward()
"""

OFFLOAD = """
import os, sys, torch, torch.distributed as dist
from torch.distributed import fsdp
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = torch.nn.Sequential(*[torch.nn.Linear(1000, 1000) for _ in range(4)])
if sys.argv[1] == "FSDP1":
    model = fsdp.FullyShardedDataParallel(
        model, cpu_offload=fsdp.CPUOffload(offload_params=True),
        device_id=torch.cuda.current_device())
else:
    policy = fsdp.CPUOffloadPolicy(pin_memory=sys.argv[1] == "pinned")
    for part in (*model, model):
        fsdp.fully_shard(part, offload_policy=policy)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(16, 1000, device="cuda")).sum().backward()
    optimizer.step()
def bytes_of(tensors):
    local = [t.to_local() if hasattr(t, "to_local") else t for t in tensors]
    assert all(t.device.type == "cpu" for t in local)
    return sum(t.untyped_storage().nbytes() for t in local)
with open(f"{sys.argv[2]}{dist.get_rank()}", "w") as file:
    print(bytes_of(model.parameters()),
          bytes_of(p.grad for p in model.parameters()),
          bytes_of(t for s in optimizer.state.values() for t in s.values()),
          file=file)
"""

# One rank's part of ZeRO-Offload, and of ZeRO-3's: DeepSpeed's own words.
ZERO = """
import importlib.util, os, sys, torch, deepspeed
stage, pinned = int(sys.argv[1]), "pinned" in sys.argv[2]
offload = {"device": "cpu", "pin_memory": pinned}
zero = {"stage": stage, "offload_optimizer": offload}
if stage == 3:
    zero.update(offload_param=offload, stage3_param_persistence_threshold=0)
model = torch.nn.Sequential(*[torch.nn.Linear(1000, 1000) for _ in range(4)])
adam = "adam" in sys.argv[2]
if adam:  # the module is built already: DeepSpeed's own build asks for nvcc
    from deepspeed.ops.op_builder.builder import OpBuilder
    spec = importlib.util.spec_from_file_location(
        "cpu_adam", os.environ["DEEPSPEED_CPU_ADAM"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    OpBuilder._loaded_ops["cpu_adam"] = module
    kind = deepspeed.ops.adam.DeepSpeedCPUAdam
else:
    kind = torch.optim.AdamW
engine, optimizer, _, _ = deepspeed.initialize(
    model=model, optimizer=kind(model.parameters()),
    config={"train_micro_batch_size_per_gpu": 16, "bf16": {"enabled": True},
            "zero_optimization": zero, "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False})
for _ in range(3):
    x = torch.randn(16, 1000, device=engine.device, dtype=torch.bfloat16)
    engine.backward(engine(x).square().mean())
    engine.step()
masters = (optimizer.fp32_partitioned_groups_flat if stage == 3
           else optimizer.single_partition_of_fp32_groups)
masters = sum(t.numel() for t in masters)
bf16 = sum(p.ds_tensor.numel() for p in model.parameters()) if stage == 3 else 0
with open(f"{sys.argv[3]}{os.environ['RANK']}", "w") as file:
    print(2 * bf16 + 4 * masters, 4 * masters, 8 * masters + 4 * (not adam),
          file=file)
"""


def run(script, *words, options=(), command=(sys.executable,)):
    """(status, the member `host' of the JSON)."""
    with tempfile.TemporaryDirectory() as folder:
        path, program = (os.path.join(folder, name) for name in ("json", "x.py"))
        with open(program, "w") as file:
            file.write(script)
        done = subprocess.run(
            [MEMSIM, "run", "-q", "--json", path, *options, "--", *command,
             program, *map(str, words)], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        with open(path) as file:
            result = json.load(file)
        assert result["command_status"] == 0, done.stderr
        return done.returncode, result["host"]


def rank_of(host):
    return next(p for p in host["processes"] if p["gpu"])


@test
def pinned_memory_is_as_pytorch_rounds_it():
    _, host = run(PINNED)
    equal(rank_of(host)["pinned_bytes"], 3 * 2 * MIB)


@test
def registered_memory_is_a_part_of_the_tensors():
    _, host = run(REGISTERED)
    equal(rank_of(host)["registered_bytes"], 5 * MIB)
    equal(rank_of(host)["tensors_bytes"] // MIB, 5)
    equal(rank_of(host)["pinned_bytes"], 0)


@test
def a_tensor_counts_though_nobody_touches_it():
    small, large = (rank_of(run(TENSORS, mib)[1]) for mib in (100, 300))
    assert 364 * MIB <= large["tensors_bytes"] < 365 * MIB, large
    grown = large["peak_bytes"] - small["peak_bytes"]
    assert abs(grown - 200 * MIB) < 20 * MIB, (small, large)


@test
def freed_memory_that_is_used_again_counts_once():
    with tempfile.TemporaryDirectory() as folder:
        said = os.path.join(folder, "resident")
        host = rank_of(run(AGAIN, said)[1])
        with open(said) as file:
            resident = int(file.read()) << 10  # memsim's own too
        assert host["tensors_bytes"] > 320 * MIB, host
        assert 0.8 * resident < host["peak_bytes"] < resident, (host, resident)


@test
def the_limit_is_of_a_node():
    equal(run(TENSORS, 100, options=["--host-memory", "64GiB"])[0], 0)
    equal(run(TENSORS, 100, options=["--host-memory", "150MiB"])[0], 124)


@contextlib.contextmanager
def control_group(limit):
    """The folder of a new one, of either version."""
    folder, name = next(
        (pair for pair in (("/sys/fs/cgroup", "memory.max"),
                           ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"))
         if os.path.exists(f"{pair[0]}/cgroup.procs")), ("", ""))
    group = f"{folder}/memsim-test-{os.getpid()}"
    try:
        if not folder:
            raise OSError("there are none")
        os.mkdir(group)
        with open(f"{group}/{name}", "w") as file:
            file.write(str(limit))
    except OSError as error:
        if folder and os.path.isdir(group):
            os.rmdir(group)
        raise Skip(f"no control group can be made: {error}") from error
    try:
        yield group
    finally:
        os.rmdir(group)


@test
def the_limit_of_the_control_group_is_a_limit():
    with control_group(1 << 30) as group, \
            tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "x.py")
        with open(program, "w") as file:
            file.write(TENSORS)
        for mib, status in (100, 0), (900, 124):  # nobody touches the tensor
            done = subprocess.run(
                ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"',
                 "sh", MEMSIM, "run", "-q", "--host-memory", "cgroup", "--",
                 sys.executable, program, str(mib)])
            equal(done.returncode, status)


@test
def a_checkpoint_is_there_beside_the_model_as_where_it_is_read():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        run(CHECKPOINT, "save", path, options=["--write-through"])
        os.utime(path, (1, 1))
        ours = rank_of(run(CHECKPOINT, "cpu", path)[1])
        read = rank_of(run(CHECKPOINT, "cpu", path,
                           options=["--real-init"])[1])
        for host in ours, read:
            equal(host["tensors_bytes"] // (128 * MIB), 2)
        assert abs(ours["peak_bytes"] - read["peak_bytes"]) < \
            0.1 * read["peak_bytes"], (ours, read)
        # One tensor after the other goes to the GPU.
        moved = rank_of(run(CHECKPOINT, "cuda", path)[1])
        equal(moved["tensors_bytes"] // (128 * MIB), 1)


@test
def workers_are_processes_of_their_rank():
    _, host = run(WORKERS)
    workers = [p for p in host["processes"] if not p["gpu"]]
    equal([p["rank"] for p in workers], [0, 0])
    for p in workers:  # not what a fork shares with the rank
        assert MIB < p["peak_bytes"] < rank_of(host)["peak_bytes"] / 2, host
    # Of 12 MiB are the batches; two wait for each worker.
    assert 12 * MIB <= host["shared_bytes"], host
    assert host["peak_bytes"] == host["shared_bytes"] + sum(
        p["peak_bytes"] for p in host["processes"])


def offloaded(script, *words):
    """What the two ranks of SCRIPT offload is what they say."""
    with tempfile.TemporaryDirectory() as folder:
        said = os.path.join(folder, "rank")
        _, host = run(script, *words, said, options=["--gpus", "2"],
                      command=[sys.executable, "-m",
                               "torch.distributed.run", "--standalone",
                               "--nproc-per-node", "2"])
        ranks = [p for p in host["processes"] if p["gpu"]]
        equal(len(ranks), 2)
        for p in ranks:
            with open(f"{said}{p['rank']}") as file:
                want = [int(word) for word in file.read().split()]
            equal([p["parameters_bytes"], p["gradients_bytes"],
                   p["optimizer_bytes"]], want)
            assert p["tensors_bytes"] + p["pinned_bytes"] >= sum(want), p
        return ranks


def can_import(words):
    return not subprocess.run([MEMSIM, "run", "-q", "--", sys.executable, "-c",
                               words], stderr=subprocess.DEVNULL).returncode


@test
def what_fsdp_offloads_is_equal_to_the_byte():
    ways = ["FSDP1"]
    if can_import("from torch.distributed.fsdp import CPUOffloadPolicy"):
        ways += ["pinned", "pageable"]
    for how in ways:
        ranks = offloaded(OFFLOAD, how)
        if how == "pinned":  # each parameter and gradient: a power of two
            assert all(p["pinned_bytes"] >= 2 * 4 * 2 * MIB
                       for p in ranks), ranks


@test
def what_zero_offloads_is_equal_to_the_byte():
    if not can_import("import deepspeed"):
        raise Skip("there is no DeepSpeed")
    for stage in 1, 2, 3:
        offloaded(ZERO, stage, "pinned")
    offloaded(ZERO, 3, "pageable")


@test
def what_deepspeeds_own_adam_keeps_is_equal_to_the_byte():
    if not os.environ.get("DEEPSPEED_CPU_ADAM"):
        raise Skip("DEEPSPEED_CPU_ADAM names no module of DeepSpeed's cpu_adam")
    for stage in 1, 2, 3:
        offloaded(ZERO, stage, "pinned-adam")


main()
