# SPDX-License-Identifier: Apache-2.0
"""memsim run --stop-after: a training that would not end is ended after its steps,
in each rank."""
import json
import pathlib
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

JOB = """
import torch
net, other = torch.nn.Linear(8, 8).cuda(), torch.nn.Linear(8, 8).cuda()
first, second = (torch.optim.SGD(n.parameters(), lr=1) for n in (net, other))
while True:
    for optimizer in (first, second):
        other(net(torch.ones(2, 8, device="cuda"))).sum().backward()
        optimizer.step()
"""
RANKS = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
net = DistributedDataParallel(torch.nn.Linear(8, 8).cuda())
adam = torch.optim.AdamW(net.parameters())
while True:
    net(torch.ones(2, 8, device="cuda")).sum().backward()
    adam.step()
"""


def run(job, *options, launcher=()):
    """(status, the report) of JOB."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "job.py")
        path.write_text(job)
        done = subprocess.run(
            [MEMSIM, "run", "-q", "--json", f"{directory}/out.json", *options,
             "--", sys.executable, *launcher, str(path)], timeout=120,
            capture_output=True, text=True, check=False)
        return done.returncode, json.loads(
            pathlib.Path(directory, "out.json").read_text())


@test
def a_program_ends_after_its_steps():
    status, report = run(JOB, "--stop-after", "3")
    equal((status, report["verdict"]), (0, "fits"))
    equal(len(report["ranks"][0]["steps"]), 5)  # of two optimizers


@test
def each_rank_ends():
    status, report = run(RANKS, "--stop-after", "2", "--gpus", "2", launcher=(
        "-m", "torch.distributed.run", "--nproc-per-node", "2"))
    equal((status, report["verdict"]), (0, "fits"))
    equal([len(rank["steps"]) for rank in report["ranks"]], [2, 2])


if __name__ == "__main__":
    main()
