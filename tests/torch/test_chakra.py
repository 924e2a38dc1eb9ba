# SPDX-License-Identifier: Apache-2.0
"""Chakra execution traces say who talks to whom: groups by their ranks, and
both ends of each message, as simulators of networks need it."""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

COMP, COLL, SEND, RECV = 4, 7, 5, 6  # NodeType

# Rows and columns of a grid of two by two, messages both ways along a column,
# and one message alone.
JOB = """
import os, torch, torch.distributed as dist
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
row = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
column = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
x = torch.ones(1 << 20, device="cuda")
parts, host = torch.empty(2 << 20, device="cuda"), torch.ones(1 << 20)
for step in range(3):
    dist.all_reduce(x, group=row)
    dist.all_reduce(x, group=column)
    dist.all_gather_into_tensor(parts, x, group=row)
    x.copy_(host)
    for op in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, x, (rank + 2) % 4),
            dist.P2POp(dist.irecv, torch.empty_like(x), (rank + 2) % 4)]):
        op.wait()
    if rank == 0:
        dist.send(x, 1)
    if rank == 1:
        dist.recv(x, 0)
torch.cuda.synchronize()
dist.destroy_process_group()
"""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def numbers(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def node(data):
    found = {"needs": [], "attributes": {}}
    for number, value in fields(data):
        if number in (1, 3):
            found[{1: "id", 3: "type"}[number]] = value
        elif number in (4, 5):
            found["needs"] += numbers(value)
        elif number == 10:
            (_, name), (_, told) = fields(value)
            found["attributes"][name.decode()] = \
                told.decode() if isinstance(told, bytes) else told
    return found


def nodes(path):
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        length, at = varint(data, at)
        found.append(data[at:at + length])
        at += length
    return [node(n) for n in found[1:]]  # the first one is the file's head


@test
def a_simulator_learns_groups_and_both_ends_of_messages():
    with tempfile.TemporaryDirectory() as scratch:
        et = pathlib.Path(scratch) / "et"
        subprocess.run(
            [MEMSIM, "run", "-q", "--chakra", et, "--nproc-per-node", "4",
             "--ranks", "all", "--", sys.executable, "-c", JOB], check=True)
        ranks = [nodes(et / f"chakra.{r}.et") for r in range(4)]
        groups = json.loads((et / "groups.json").read_text())
    assert [0, 2] in groups.values() and [2, 3] in groups.values(), groups
    ends = collections.Counter()
    for rank, all_nodes in enumerate(ranks):
        seen, used = set(), set()
        for n in all_nodes:
            assert n["id"] not in seen and seen.issuperset(n["needs"]), n
            seen.add(n["id"])
            told = n["attributes"]
            # Each gives 4 MiB, also to the gather. A copy is computing.
            assert n["type"] in (COMP, COLL, SEND, RECV), n
            if n["type"] == COLL:
                equal(told["comm_size"], 4 << 20)
                used.add(tuple(groups[told["pg_name"]]))
            if n["type"] in (SEND, RECV):
                equal(told["comm_dst" if n["type"] == RECV else "comm_src"],
                      rank)
                equal(told["comm_size"], 4 << 20)
                ends[(told["comm_src"], told["comm_dst"], told["comm_tag"],
                      told["pg_name"])] += 1 if n["type"] == SEND else -1
        equal(used, {(rank // 2 * 2, rank // 2 * 2 + 1),
                     (rank % 2, rank % 2 + 2)})
    equal(len(ends), 15)  # of 3 steps
    equal(set(ends.values()), {0})  # each send has its receive


if __name__ == "__main__":
    main()
