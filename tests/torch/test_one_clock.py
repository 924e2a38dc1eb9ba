# SPDX-License-Identifier: Apache-2.0
"""The ranks of a job have one clock: what each of them prints is what the report
says, whoever is the slowest."""
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

# Rank 0 has 1/64 of rank 1's samples. As torchtitan does, each rank logs what a
# step takes.
UNEVEN = """
import os, time, torch, torch.distributed as dist
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)])
model = torch.nn.parallel.DistributedDataParallel(
    model.cuda().bfloat16(), device_ids=[local])
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
x = torch.randn(1024 << 6 * (rank == 1), 2048, device="cuda",
                dtype=torch.bfloat16)
for step in range(1, 6):
    start = time.perf_counter_ns()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    torch.cuda.synchronize()
    took = time.perf_counter_ns() - start
    print(f"[rank{rank}]:step: {step} took: {took} tps: {1e9 / took:,.0f}",
          flush=True)
"""

PIPELINE = """
import os, time, torch, torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = torch.nn.Sequential(*[
    torch.nn.Linear(2048, 2048, dtype=torch.bfloat16)
    for _ in range(2 + 2 * rank)]).cuda()
schedule = Schedule1F1B(PipelineStage(model, rank, 4, torch.device("cuda")), 8,
                        loss_fn=lambda y, x: (y - x).float().pow(2).mean())
x = torch.randn(8 * 4096, 2048, device="cuda", dtype=torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for step in range(1, 6):
    start = time.perf_counter_ns()
    schedule.step(*([x] if rank == 0 else []),
                  **({"target": x} if rank == 3 else {}))
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    took = time.perf_counter_ns() - start
    print(f"[rank{rank}]:step: {step} took: {took}", flush=True)
"""

# Two equal stages, two copies of the pipeline: ranks 0 and 2, 1 and 3. TIED, the
# stages share weights, as Megatron's: one group more has the same ranks, and
# meets before the first message.
STAGES = """
import os, sys, time, torch, torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
rank, parts, tied = int(os.environ["RANK"]), int(sys.argv[1]), sys.argv[2:]
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
group = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
shared = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
model = torch.nn.Sequential(*[
    torch.nn.Linear(2048, 2048, dtype=torch.bfloat16)
    for _ in range(4)]).cuda()
x = torch.randn(parts * 8192, 2048, device="cuda", dtype=torch.bfloat16)
part = x[:8192]  # its shape: else the stages would send each other objects
if tied:
    dist.all_reduce(part.clone(), group=shared)
schedule = Schedule1F1B(
    PipelineStage(model, rank // 2, 2, torch.device("cuda"), part, part, group),
    parts, loss_fn=lambda y, x: (y - x).float().pow(2).mean())
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for step in range(1, 6):
    start = time.perf_counter_ns()
    schedule.step(*([x] if rank < 2 else []),
                  **({"target": x} if rank >= 2 else {}))
    if tied:
        dist.all_reduce(model[0].weight.grad, group=shared)
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    took = time.perf_counter_ns() - start
    print(f"[rank{rank}]:step: {step} took: {took}", flush=True)
"""


# Rank 1 waits on the host for rank 0, which waits for rank 1's part of an
# all-reduce: on a cluster rank 1's GPU gets there meanwhile.
HOST_WAIT = """
import os, torch, torch.distributed as dist
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("cpu:gloo,cuda:nccl")
x = torch.ones(1 << 24, device="cuda")
for step in range(1, 4):
    dist.all_reduce(x)
    if rank == 0:
        torch.cuda.synchronize()
    dist.all_reduce(torch.zeros(1))
    print(f"[rank{rank}]:step: {step} took: 0", flush=True)
dist.destroy_process_group()
"""

# Threads as those that watch PyTorch's collectives: each rank takes about 1% of a
# processor while it waits.
WATCHED = """
import os, select, threading
def watch(pipe=os.pipe()[0]):
    while True:
        select.select([pipe], [], [], 0.02)
        sum(range(8000))
threading.Thread(target=watch, daemon=True).start()
"""

# Groups within nodes of two and groups across them take turns, with messages.
GROUPS = """
import os, time, torch, torch.distributed as dist
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
near = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
far = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
x = torch.ones(1 << 24, device="cuda")
for step in range(1, 5):
    torch.cuda.nvtx.range_push("step")
    start = time.perf_counter_ns()
    dist.all_reduce(x, group=near)
    dist.all_reduce(x, group=far)
    for op in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, x, (rank + 2) % 4),
            dist.P2POp(dist.irecv, torch.empty_like(x), (rank + 2) % 4)]):
        op.wait()
    torch.cuda.synchronize()
    took = time.perf_counter_ns() - start
    torch.cuda.nvtx.range_pop()
    print(f"[rank{rank}]:step: {step} took: {took}", flush=True)
"""

# Rank 1 ends early; rank 0 waits for it.
ENDS_EARLY = """
import os, torch, torch.distributed as dist
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
x = torch.ones(1 << 24, device="cuda")
dist.all_reduce(x)
torch.cuda.synchronize()
if rank == 1:
    os._exit(0)
dist.all_reduce(x)
torch.cuda.synchronize()
print("[rank0]:step: 1 took: 0", flush=True)
os._exit(0)
"""


# Two experts, one on each rank: each rank sends a token to the expert that its
# router chooses.
EXPERTS = """
import os, time, torch, torch.distributed as dist
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.router = torch.nn.Linear(1024, 2, bias=False)
        self.own = torch.nn.Linear(1024, 4096)
    def forward(self, x):
        chosen = self.router(x).topk(1)[1].flatten()
        send = torch.bincount(chosen, minlength=2)
        got = torch.empty_like(send)
        dist.all_to_all_single(got, send)
        y = x.new_empty(got.sum().item(), 1024)
        dist.all_to_all_single(y, x[chosen.argsort()], got.tolist(),
                               send.tolist())
        return self.own(y).float().sum()
model = Experts().cuda().bfloat16()
optimizer = torch.optim.SGD(model.own.parameters(), lr=.1)
x = torch.randn(65536, 1024, device="cuda", dtype=torch.bfloat16)
for step in range(1, 6):
    start = time.perf_counter_ns()
    model(x).backward()
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(x[:1])
    torch.cuda.synchronize()
    took = time.perf_counter_ns() - start
    print(f"[rank{rank}]:step: {step} took: {took}", flush=True)
"""


def run(script, *options, ranks=2, rc=0, words=()):
    """The times of a step that each rank prints, by rank, and the report."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.json"
        done = subprocess.run(
            [MEMSIM, "run", "-q", "--json", out, "--nproc-per-node",
             str(ranks), *options, "--", sys.executable, "-c", script, *words],
            stdout=subprocess.PIPE, text=True, check=False)
        equal(done.returncode, rc)
        printed, report = done.stdout, json.loads(out.read_text())
    lines = re.findall(r"\[rank(\d+)\]:step: (\d+) took: (\d+)", printed)
    seen = {}
    for rank, step, took in sorted((int(r), int(s), int(t))
                                   for r, s, t in lines):
        seen.setdefault(rank, []).append(took)
    return seen, report


def is_reported(seen, report, ranks, within=0.01):
    """The later steps of all RANKS, for the first is a warm-up."""
    equal(sorted(seen), sorted(ranks))
    step_ns = report["time"]["step_ns"]
    for rank, took in seen.items():
        for ns in took[2:]:
            assert abs(ns / step_ns - 1) < within, (rank, took, step_ns)


@test
def a_fast_rank_prints_the_step_of_the_slow_one():
    options = ["--ranks", "all", "--host-speed", "0"]
    seen, report = run(UNEVEN, *options)
    is_reported(seen, report, [0, 1])
    again, _ = run(UNEVEN, *options)
    equal({rank: took[2:] for rank, took in seen.items()},
          {rank: took[2:] for rank, took in again.items()})


@test
def a_clock_may_stay_local():
    seen, report = run(UNEVEN, "--ranks", "all", "--host-speed", "0",
                       "--local-clock")
    assert seen[0][-1] < report["time"]["step_ns"] / 4, (seen, report["time"])


@test
def a_pipelines_stages_print_the_reported_step():
    seen, report = run(PIPELINE, "--ranks", "all", "--host-speed", "0", ranks=4)
    is_reported(seen, report, range(4))


@test
def a_stage_waits_for_one_that_a_named_rank_stands_for():
    """Of a pipeline of p stages and m micro-batches (p - 1) / m is a bubble."""
    step_ns = {}
    for ranks in "0,3", "all":
        for parts in 4, 8:
            seen, report = run(STAGES, "--ranks", ranks, "--host-speed", "0",
                               ranks=4, words=[str(parts)])
            equal(sorted(seen), [0, 3] if ranks == "0,3" else [0, 1, 2, 3])
            step = step_ns[ranks, parts] = report["time"]["step_ns"]
            for took in seen.values():
                assert abs(statistics.median(took[2:]) / step - 1) < .01, seen
    for parts in 4, 8:
        named, whole = step_ns["0,3", parts], step_ns["all", parts]
        assert abs(named / whole - 1) < .01, step_ns
    ratio = step_ns["all", 8] / step_ns["all", 4]  # twice the work
    assert abs(ratio / ((8 + 1) / (4 + 1)) - 1) < .03, step_ns


@test
def a_group_from_before_the_first_message_meets_as_the_later_ones():
    seen, report = run(STAGES, "--ranks", "0,3", "--host-speed", "0",
                       ranks=4, words=["4", "tied"])
    is_reported(seen, report, [0, 3])
    equal([n for n in report["notes"] if "went on without" in str(n)], [])


def replay(kept, *options):
    """The report of a replay."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "replay.json"
        subprocess.run([MEMSIM, "replay", "-q", "--json", out, *options, kept],
                       stdout=subprocess.DEVNULL, check=True)
        return json.loads(out.read_text())


@test
def a_replay_knows_for_whom_ranks_stood():
    with tempfile.TemporaryDirectory() as scratch:
        kept = pathlib.Path(scratch) / "kept"
        _, report = run(STAGES, "--ranks", "0,3", "--host-speed", "0", "-o",
                        kept, ranks=4, words=["4"])
        played = replay(kept)
        cluster = pathlib.Path(scratch) / "small.json"
        cluster.write_text(json.dumps(
            {"kind": "cluster", "name": "small", "gpu": "a100-sxm-80gb",
             "gpus_per_node": 2, "intra": {"gbps": 200, "latency_us": 2},
             "inter": {"gbps": 20, "latency_us": 9}}))
        elsewhere = replay(kept, "--cluster", cluster)
        asked = replay(kept, "--cluster", cluster, "--gpu", "h100-sxm-80gb")
    equal(played["time"]["step_ns"], report["time"]["step_ns"])
    equal(*[{r["rank"]: r["members"] for r in of["ranks"]}
            for of in (played, report)])
    said = " ".join(elsewhere["notes"])
    assert "a node has 2 GPUs, and the job had 4 ranks on each" in said, said
    assert "the cluster's, a100-sxm-80gb; the run's was h100-sxm-80gb" in said
    assert "the cluster's, a100" not in " ".join(asked["notes"])


@test
def ranks_that_are_no_processes_come_as_theirs_do():
    seen, report = run(UNEVEN, "--nnodes", "2", "--ranks", "0,1,15",
                       "--host-speed", "0", ranks=8)
    is_reported(seen, report, [0, 1, 15])


@test
def groups_across_nodes_cost_in_a_program_what_they_cost_in_the_report():
    took = []
    for placement in "block", "round-robin":
        seen, report = run(GROUPS, "--nnodes", "2", "--ranks", "all",
                           "--host-speed", "0", "--cluster", "h100-sxm-80gb:2",
                           "--placement", placement, ranks=2)
        is_reported(seen, report, range(4), within=.001)
        took.append(seen[0][-1])
    # round-robin: the messages stay within a node
    assert took[1] < .8 * took[0], took


@test
def skewed_routing_is_in_the_clock():
    options = ["--ranks", "all", "--host-speed", "0"]
    even, _ = run(EXPERTS, *options)
    seen, report = run(EXPERTS, *options, "--routing", "zipf:3")
    is_reported(seen, report, [0, 1])
    assert seen[1][-1] > 1.1 * even[1][-1], (seen, even)


@test
def a_rank_that_waits_on_the_host_ends_no_clock():
    seen, _ = run(HOST_WAIT, "--ranks", "all", "--host-speed", "0")
    equal({rank: len(took) for rank, took in seen.items()}, {0: 3, 1: 3})


@test
def eight_ranks_that_wait_and_are_watched_end_no_clock():
    seen, _ = run(WATCHED + HOST_WAIT, "--ranks", "all", "--host-speed", "0",
                  ranks=8)
    equal({rank: len(took) for rank, took in seen.items()},
          {rank: 3 for rank in range(8)})


@test
def a_rank_that_has_ended_is_not_waited_for():
    seen, _ = run(ENDS_EARLY, "--ranks", "all", "--host-speed", "0", rc=122)
    equal(seen, {0: [0]})


if __name__ == "__main__":
    main()
