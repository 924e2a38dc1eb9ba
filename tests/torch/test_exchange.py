# SPDX-License-Identifier: Apache-2.0
"""Small values that ranks send each other through NCCL, on real PyTorch: every
collective, collectives of objects, a distributed checkpoint, and pipelines.
Starts its own runs: MEMSIM_BUILD."""
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

from harness import Skip, equal, main, test

BUILD = os.environ["MEMSIM_BUILD"]
HEAD = """
import os, sys, torch, torch.distributed as dist, torch.nn as nn
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
def equal(got, want):
    assert got == want, f"rank {rank}: {got!r}, not {want!r}"
def numbers(*values):
    return torch.tensor(values, device="cuda")
"""

TENSORS = HEAD + """
# First of all: once the world has a communicator, PyTorch 2.5 may split it for
# a pair of ranks. A split takes all ranks, so that this hangs on a cluster.
out = numbers(0)
there, back = dist.new_group(), dist.new_group()
if rank == 0:  # asked for before anybody sends
    late = dist.irecv(out, 1, group=back)
    dist.send(numbers(4), 1, group=there)
    late.wait()
    equal(out.item(), 5)
elif rank == 1:
    dist.recv(out, 0, group=there)
    dist.send(out + 1, 0, group=back)
x = numbers(7 if rank == 0 else 1)
dist.broadcast(x, 0)
equal(x.item(), 7)
for op, want in ((dist.ReduceOp.SUM, 6), (dist.ReduceOp.MAX, 3),
                 (dist.ReduceOp.MIN, 1), (dist.ReduceOp.PRODUCT, 6),
                 (dist.ReduceOp.AVG, 2)):
    x = numbers(rank + 1.0)
    dist.all_reduce(x, op=op)
    equal(x.item(), want)
parts = [numbers(0) for _ in range(3)]
dist.all_gather(parts, numbers(rank + 5))
equal([p.item() for p in parts], [5, 6, 7])
out = numbers(0, 0)
dist.reduce_scatter_tensor(out, torch.arange(6, device="cuda") * (rank + 1))
equal(out.tolist(), [12 * rank, 12 * rank + 6])
out = numbers(0, 0, 0)
dist.all_to_all_single(out, torch.arange(3, device="cuda") + 10 * rank)
equal(out.tolist(), [rank, 10 + rank, 20 + rank])
out, after = numbers(0), (rank + 1) % 3
for each in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, numbers(rank), after),
         dist.P2POp(dist.irecv, out, (rank - 1) % 3)]):
    each.wait()
equal(out.item(), (rank - 1) % 3)

objects = [None] * 2 if rank else ["a", {"b": 2}]
dist.broadcast_object_list(objects, 0)
equal(objects, ["a", {"b": 2}])
out = [None] * 3
dist.all_gather_object(out, "x" * rank)
equal(out, ["", "x", "xx"])
out = [None] * 3 if rank == 0 else None
dist.gather_object(rank, out, 0)
equal(out, [0, 1, 2] if rank == 0 else None)
out = [None]
dist.scatter_object_list(out, [4, 5, 6] if rank == 0 else None, 0)
equal(out, [4 + rank])
dist.barrier()
dist.destroy_process_group()
"""

CHECKPOINT = HEAD + """
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, get_state_dict,
    set_model_state_dict, set_state_dict)
try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # before 2.6
    from torch.distributed._composable.fsdp import fully_shard
def made():
    model = fully_shard(nn.Linear(64, 64).cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 64, device="cuda")).sum().backward()
    optimizer.step()
    return model, optimizer
model, optimizer = made()
weights, state = get_state_dict(model, optimizer)
dcp.save({"model": weights, "optimizer": state, "step": 3},
         checkpoint_id=sys.argv[1])
model, optimizer = made()
weights, state = get_state_dict(model, optimizer)
loaded = {"model": weights, "optimizer": state, "step": 0}
dcp.load(loaded, checkpoint_id=sys.argv[1])
set_state_dict(model, optimizer, model_state_dict=loaded["model"],
               optim_state_dict=loaded["optimizer"])
equal(loaded["step"], 3)
whole = get_model_state_dict(model, options=StateDictOptions(
    full_state_dict=True, cpu_offload=True))
set_model_state_dict(model, whole if rank == 0 else {}, options=StateDictOptions(
    full_state_dict=True, broadcast_from_rank0=True))
dist.destroy_process_group()
"""

PIPELINE = HEAD + """
from torch.distributed import pipelining
def stage(index, count):
    layer = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    return pipelining.PipelineStage(layer.cuda(), index, count,
                                    torch.device("cuda", rank))
def run(schedule):
    losses = []
    x = [torch.randn(16, 64, device="cuda")] if rank == 0 else []
    last = {"target": torch.randn(16, 64, device="cuda"), "losses": losses}
    schedule.step(*x, **(last if rank == 1 else {}))
    equal(len(losses), 4 if rank == 1 else 0)
loss = nn.functional.mse_loss
for kind in "GPipe", "1F1B":
    run(getattr(pipelining, "Schedule" + kind)(
        stage(rank, 2), n_microbatches=4, loss_fn=loss))
for kind in "Interleaved1F1B", "InterleavedZeroBubble":
    run(getattr(pipelining, "Schedule" + kind)(
        [stage(rank + 2 * i, 4) for i in range(2)], n_microbatches=4,
        loss_fn=loss))
dist.barrier()
dist.destroy_process_group()
"""

# Rank 1 ends before it sends: rank 0 is told, and does not wait for ever.
DEATH = HEAD + """
x = numbers(rank)
dist.all_reduce(x)
equal(x.item(), 1)
if rank == 1:
    os._exit(3)
dist.all_reduce(x)
x.item()
"""


def run(text, ranks, launcher="torchrun"):
    with tempfile.TemporaryDirectory() as directory:
        script = os.path.join(directory, "train.py")
        with open(script, "w") as file:
            file.write(text)
        start = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                 "--nproc-per-node", str(ranks), script]
        if launcher == "sh":  # each rank on its own, and the status of none
            start = ["sh", "-c", "export MASTER_ADDR=127.0.0.1 WORLD_SIZE=2 "
                     "MASTER_PORT=0 STORE=$1; RANK=0 LOCAL_RANK=0 $0 $2 & "
                     "RANK=1 LOCAL_RANK=1 $0 $2; wait; exit 0",
                     sys.executable, os.path.join(directory, "store"), script]
        return subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "--gpus", str(ranks), "--", *start,
             *([] if launcher == "sh" else [directory + "/checkpoint"])],
            capture_output=True, text=True, timeout=600)


def passes(text, ranks):
    done = run(text, ranks)
    assert done.returncode == 0, done.stderr


@test
def ranks_get_what_others_sent():
    passes(TENSORS, 3)


@test
def a_distributed_checkpoint_is_written_and_read():
    passes(CHECKPOINT, 2)


@test
def pipelines_know_the_shapes_of_other_stages():
    if version("torch").startswith(("2.4.", "2.5.")):
        raise Skip("these schedules are of PyTorch 2.6 and later")
    passes(PIPELINE, 2)


@test
def a_rank_that_ends_is_told():
    text = DEATH.replace('dist.init_process_group("nccl")',
                         'dist.init_process_group("nccl", init_method='
                         '"file://" + os.environ["STORE"], rank=rank, '
                         'world_size=world)')
    done = run(text, 2, "sh")
    equal(done.returncode, 125)
    flat = " ".join(done.stderr.split())
    assert ("train.py:17: rank 0 waited in ncclAllReduce for rank "
            "1, which has ended") in flat, done.stderr
    assert "rank 1 ended with status 3" in flat, done.stderr


main()
