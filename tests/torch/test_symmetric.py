# SPDX-License-Identifier: Apache-2.0
"""Symmetric memory over NCCL, on real PyTorch: windows that ranks share, their
addresses, and one-sided calls where PyTorch has them (2.15). Starts its own
runs: MEMSIM_BUILD."""
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

from harness import Skip, equal, main, test

BUILD = os.environ["MEMSIM_BUILD"]
HEAD = """
import os, torch, torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
symmetric.set_backend("NCCL")
dist.init_process_group("nccl", device_id=device)
dist.all_reduce(torch.ones(1, device=device))
mine = symmetric.empty(4096, dtype=torch.bfloat16, device=device)
shared = symmetric.rendezvous(mine, group=dist.group.WORLD.group_name)
assert shared.world_size == world and shared.rank == rank
"""

SIGNALS = HEAD + """
mine.fill_(rank)
addresses = shared.buffer_ptrs
assert addresses[rank] == mine.data_ptr(), (addresses, mine.data_ptr())
assert len(set(addresses)) == world and all(addresses), addresses
if rank == 0:
    symmetric.put_signal(mine, shared, 1)
else:
    symmetric.wait_signal(shared, 0)
there = torch.empty(16, dtype=torch.bfloat16, device=device)
symmetric.get(there, shared, 1 - rank)
torch.cuda.synchronize()
dist.destroy_process_group()
"""


def run(script):
    """The output of two ranks of SCRIPT."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "script.py")
        with open(path, "w") as file:
            file.write(script)
        done = subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "--cluster", "dgx-h100", "--nnodes",
             "1", "--nproc-per-node", "2", "--ranks", "all", "--",
             sys.executable, path],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        equal((done.returncode, done.stdout[-3000:] * bool(done.returncode)),
              (0, ""))
        return done.stdout


def newer_than(*wanted):
    return tuple(int(n) for n in version("torch").split(".")[:2]) >= wanted


@test
def a_window_is_the_gpus():
    """PyTorch's kernel that reads a window is given an address of the GPU."""
    if not newer_than(2, 11):
        raise Skip("PyTorch 2.11 and later")
    assert "host address" not in run(HEAD)


@test
def ranks_put_and_signal():
    if not newer_than(2, 15):
        raise Skip("PyTorch 2.15 and later")
    lines = [line.split() for line in run(SIGNALS).splitlines()]
    sent = [line for line in lines if line[:1] == ["sendrecv"]]
    equal([line[6:8] for line in sent], [["8.00", "KiB"]])  # rank 0's put


main()
