# SPDX-License-Identifier: Apache-2.0
"""Delays of calls: a step hides them up to a knee, and beyond it has as many of them
as it waits for calls; what ranks print is what the report says."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

BUCKETS = 4

# A layer is a bucket. FRONT has no parameters: its backward comes behind the last
# bucket, whose all-reduce would else have nothing beside it.
DDP = f"""
import os, time, torch, torch.distributed as dist
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
class Front(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randn(4096, 4096))
    def forward(self, x):
        for _ in range(6):
            x = x @ self.w
        return x
front = [Front()] if os.environ.get("FRONT", "1") == "1" else []
model = torch.nn.Sequential(*front, *[
    torch.nn.Linear(4096, 4096, bias=False) for _ in range({BUCKETS})])
model = torch.nn.parallel.DistributedDataParallel(
    model.cuda().bfloat16(), device_ids=[local], bucket_cap_mb=1)
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
x = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16,
                requires_grad=True)
for step in range(1, 7):
    start = time.perf_counter_ns()
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    took = time.perf_counter_ns() - start
    print(f"[rank{{rank}}]:step: {{step}} took: {{took}}", flush=True)
"""


def memsim(*words, rc=0, env=""):
    done = subprocess.run(
        ["env", *env.split(), MEMSIM, *words], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == rc, (done.returncode, done.stderr)
    return done.stdout


def run(scratch, *options, rc=0, env=""):
    """The times of a step that each rank prints, and the report."""
    out = pathlib.Path(scratch) / "out.json"
    printed = memsim("run", "-q", "--force", "--json", out, "--nproc-per-node",
                     "2", "--ranks", "all", "--host-speed", "0", *options,
                     "--", sys.executable, "-c", DDP, rc=rc, env=env)
    seen = {}
    for rank, took in re.findall(r"\[rank(\d+)\]:step: \d+ took: (\d+)",
                                 printed):
        seen.setdefault(int(rank), []).append(int(took))
    return seen, json.loads(out.read_text())


def steps(report, rank):
    found, = [r for r in report["ranks"] if r["rank"] == rank]
    return [s["duration_ns"] for s in found["steps"]]


def sweep(*options, env=""):
    text = memsim("sweep", "--no-cache", "--host-speed", "0", "--json", "-",
                  "--delay", "ncclAllReduce={delay}", "--nproc-per-node", "2",
                  *options, "--", sys.executable, "-c", DDP, env=env)
    return json.loads(text)


@test
def a_step_hides_delays_up_to_a_knee():
    found = sweep("delay=0..4ms:0.25ms")
    ns = [r["step_ns"] for r in found["runs"]]
    ms = [i * .25 for i in range(len(ns))]
    knee, = found["knees"]
    at = knee["hidden_ns"] / 1e6
    assert .5 < at < 2, knee
    for delay, step in zip(ms, ns):
        if delay < at:  # flat, but for the gaps of what is delayed
            assert step - ns[0] < 5000, (delay, ns)
        else:  # each bucket's delay is in the step
            want = ns[0] + BUCKETS * (delay - at) * 1e6
            assert abs(step - want) < 5000, (delay, step, want)
    assert abs(knee["calls"] - BUCKETS) < .001, knee
    assert abs(knee["calls_at_first"]) < .01, knee


@test
def the_last_bucket_of_a_plain_job_is_not_hidden():
    found = sweep("delay=0,50us,5ms,6ms", env="FRONT=0")
    knee, = found["knees"]
    assert abs(knee["calls_at_first"] - 1) < .02, knee
    assert abs(knee["calls"] - BUCKETS) < .001, knee
    equal(knee["hidden_ns"], 0)


@test
def ranks_print_the_reported_step():
    """With a delay of one rank, a late host, jitter, and GPUs that differ."""
    options = ["--delay", "ncclAllReduce=3ms,rank=1,jitter=30%,every=2",
               "--delay", "host=4ms,from-step=3", "--delay", "gpu=1.1x,rank=0",
               "--stragglers", "20%,5"]
    with tempfile.TemporaryDirectory() as scratch:
        seen, report = run(scratch, *options)
        for rank in 0, 1:
            equal(seen[rank][1:], steps(report, rank)[1:])
        assert max(seen[0][4:]) > max(seen[0][1:3]) + 3e6, seen
        again, _ = run(scratch, *options)
        equal(again[0][1:], seen[0][1:])
        plain, _ = run(scratch)
        assert plain[0][-1] < seen[0][-1], (plain, seen)


@test
def a_rank_that_stands_for_others_has_the_latest_of_them():
    """Of four ranks one runs. A shared object delays it, too."""
    source = pathlib.Path(__file__).parents[2] / "src/playback"
    code = """
#include <memsim_delay.h>
const unsigned memsim_delay_version = MEMSIM_DELAY_VERSION;
uint64_t memsim_delay(const struct memsim_delay_call *c)
{
    return c->ranks == 4 && c->step == 4 ? 1500000 : 0;
}
"""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["cc", "-shared", "-fPIC", "-I", source, "-x", "c", "-",
                        "-o", f"{scratch}/late.so"], input=code, text=True,
                       check=True)
        seen, report = run(scratch, "--nproc-per-node", "4", "--ranks", "0",
                           "--delay", "ncclAllReduce=4ms,rank=3,from-step=3",
                           "--stragglers", "10%", "--delay-lib",
                           f"{scratch}/late.so")
        took = steps(report, 0)
        equal(seen[0][1:], took[1:])
        assert took[3] > took[2] + 5e6, took
        # and the broadcast of FRONT's buffer
        more = (BUCKETS + 1) * 1.5e6
        assert abs(took[4] - took[3] - more) < 1e5, took


@test
def an_imported_profile_has_the_same_knee():
    with tempfile.TemporaryDirectory() as scratch:
        run(scratch, "-o", f"{scratch}/run", "--kineto", f"{scratch}/k.json")
        memsim("import", *[str(p) for p in
                           sorted(pathlib.Path(scratch).glob("k*.json"))],
               "-o", f"{scratch}/profile")

        def step(delay):
            text = memsim("replay", f"{scratch}/profile", "-q", "--json", "-",
                          "--delay", f"ncclAllReduce={delay}")
            return json.loads(text)["time"]["step_ns"]
        plain, less, more, most = map(step, ("0ms", "0.5ms", "3ms", "4ms"))
        assert less - plain < 10000, (plain, less)
        assert abs(most - more - BUCKETS * 1e6) < 1000, (more, most)
        kept = f"{scratch}/run"
        text = memsim("report", kept, "-q", "--json", "-", "--delay",
                      "ncclAllReduce=3ms")
        recorded = json.loads(text)["time"]["step_ns"]
        assert abs(recorded / more - 1) < .02, (recorded, more)


@test
def an_emulated_rank_has_them_on_the_real_stream():
    """On the GPU of another memsim run: the card."""
    script = DDP.replace("FRONT", "NO_FRONT")

    def step(delay, *emulate):
        with tempfile.TemporaryDirectory() as scratch:
            out = f"{scratch}/out.json"
            memsim("run", "-q", "--host-speed", "0", "--json", out, "--", MEMSIM,
                   "emulate", "-q", "--nproc-per-node", "2", "--delay",
                   f"ncclAllReduce={delay}", *emulate, "--", sys.executable,
                   "-c", script)
            return json.loads(pathlib.Path(out).read_text())["time"]["step_ns"]
    plain, more, most = map(step, ("0ms", "8ms", "9ms"))
    assert more > plain + 8e6, (plain, more)
    assert abs(most - more - BUCKETS * 1e6) < 1e4, (more, most)
    equal(step("9ms,rank=1"), most)
    equal(step("9ms,rank=2"), plain)


@test
def a_rank_dies_at_a_step():
    with tempfile.TemporaryDirectory() as scratch:
        seen, report = run(scratch, "--delay", "die=3,rank=1", rc=125)
        equal(len(seen[1]), 3)
        assert len(seen[0]) >= 3, seen  # it goes on until it is stopped
        equal(report["verdict"], "failed")
        assert any("rank 1 dies as step 3 begins" in n
                   for n in report["notes"]), report["notes"]
        assert not any("dmesg" in n for n in report["notes"]), report["notes"]
        run(scratch, "-o", f"{scratch}/run")
        text = memsim("replay", f"{scratch}/run", "-q", "--json", "-",
                      "--delay", "die=3,rank=1", rc=125)
        report = json.loads(text)
        equal(report["verdict"], "failed")
        equal(len(steps(report, 1)), 3)


if __name__ == "__main__":
    main()
