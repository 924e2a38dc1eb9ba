# SPDX-License-Identifier: Apache-2.0
"""memsim run --stacks: the line of the script that made each block. Starts runs
of its own with the programs of MEMSIM_BUILD."""
import json
import os
import pickle
import subprocess
import sys
import tempfile

from harness import equal, main, test

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MEMSIM = os.environ.get("MEMSIM_BUILD", f"{ROOT}/build") + "/bin/memsim"

JOB = """import torch
def make(n):
    return torch.empty(n, dtype=torch.uint8, device="cuda")  # line 3
class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1  # line 6
small = make(1000)
large = make(4 << 20)  # line 8
kept = Net()(large)  # line 9
"""
# Another thread asks the allocator, and holds the interpreter's lock, all the
# time: the stack is taken before the allocator's lock.
THREADS = """import threading, torch
stop = False
def ask():
    while not stop:
        torch.cuda.memory_allocated()
        torch.cuda.memory_stats()
torch.empty(1, device="cuda")
threads = [threading.Thread(target=ask) for _ in range(2)]
for each in threads: each.start()
def work():
    for i in range(2000): torch.empty(1000 + i, device="cuda")
workers = [threading.Thread(target=work) for _ in range(2)]
for each in workers: each.start()
for each in workers: each.join()
stop = True
for each in threads: each.join()
"""


def run(text, *options, folder):
    script = f"{folder}/job.py"
    with open(script, "w") as file:
        file.write(text)
    subprocess.run([MEMSIM, "run", "-q", "--json", f"{folder}/out.json",
                    "--flame", f"{folder}/out.folded", *options, "--",
                    sys.executable, script], check=True, timeout=300)
    with open(f"{folder}/out.json") as file:
        device = json.load(file)["ranks"][0]["devices"][0]
    with open(f"{folder}/out.folded") as file:
        folded = file.read().splitlines()
    return device, folded


def blocks(device):
    """(bytes, frames of the stack) of each allocated block."""
    stacks = device.get("stacks", [])
    return sorted((b["bytes"], stacks[b["stack"]].split("\n")
                   if "stack" in b else None)
                  for s in device["segments_at_peak"] for b in s["blocks"]
                  if b["state"] == "allocated")


@test
def every_block_has_its_stack():
    with tempfile.TemporaryDirectory() as folder:
        device, folded = run(JOB, "--stacks", "all", folder=folder)
        path = f"{folder}/job.py"
        small, *large = blocks(device)
        equal(small, (1024, [f"{path}:3 make", f"{path}:7 <module>"]))
        stacks = sorted(stack for _, stack in large)
        equal(stacks, [[f"{path}:3 make", f"{path}:8 <module>"],
                       [f"{path}:6 forward", f"{path}:9 <module>"]])
        where = {t.get("where") for t in device["things_at_peak"]}
        assert {"job.py:3", "job.py:6"} <= where, where
        equal(sum(int(line.rsplit(" ", 1)[1]) for line in folded),
              device["peak_allocated_bytes"])
        assert any(line.startswith(
            f"rank 0, GPU 0;{path}:9 <module>;{path}:6 forward;aten::add ")
            for line in folded), folded


@test
def only_large_blocks_have_one():
    with tempfile.TemporaryDirectory() as folder:
        device, _ = run(JOB, "--stacks", "large", folder=folder)
        equal([stack is not None for _, stack in blocks(device)],
              [False, True, True])


@test
def without_the_option_there_is_none_and_the_peak_is_the_same():
    with tempfile.TemporaryDirectory() as folder:
        without, folded = run(JOB, folder=folder)
        assert "stacks" not in without
        assert any(";Net;aten::add " in line for line in folded), folded
        with_all, _ = run(JOB, "--stacks", "all", folder=folder)
        for name in ("peak_allocated_bytes", "peak_reserved_bytes",
                     "peak_used_bytes"):
            equal(with_all[name], without[name])


@test
def threads_that_ask_the_allocator_do_not_block():
    with tempfile.TemporaryDirectory() as folder:
        run(THREADS, "--stacks", "all", folder=folder)


# The script records PyTorch's own history, for a time.
HISTORY = """import sys, torch
def make(n):
    return torch.empty(n, dtype=torch.uint8, device="cuda")  # line 3
before = make(1000)
torch.cuda.memory._record_memory_history()
during = make(4 << 20)  # line 6
gone = make(8 << 20); del gone
torch.cuda.memory._dump_snapshot(sys.argv[1])
torch.cuda.memory._record_memory_history(enabled=None)
after = make(16 << 20)
"""


def lines(frames):
    """The frames that are lines of the script, the innermost first."""
    return [(f["line"], f["name"]) for f in frames
            if f["filename"].endswith("job.py")]


def load(path):
    """(blocks that are allocated, events) of a snapshot"""
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    blocks = [b for s in snapshot["segments"] for b in s["blocks"]
              if b["state"] == "active_allocated"]
    return blocks, [e for t in snapshot["device_traces"] for e in t]


# A snapshot as PyTorch writes it: the lines of what is live at the peak.
@test
def the_replay_of_a_snapshot_lists_lines():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/job.py", "w") as file:
            file.write(HISTORY.replace("gone = ",
                                       "gone = make(2 << 20); gone = "))
        subprocess.run([MEMSIM, "run", "-q", "--", sys.executable,
                        f"{folder}/job.py", f"{folder}/s"], check=True,
                       timeout=300)
        out = subprocess.run([MEMSIM, "replay", f"{folder}/s", "--json",
                              f"{folder}/j", "--flame", f"{folder}/f"],
                             check=True, capture_output=True, text=True).stdout
        with open(f"{folder}/j") as file:
            rows = json.load(file)["replay"][0]["lines"]
        equal([(r["line"], r["bytes"], r["blocks"]) for r in rows],
              [(f"{folder}/job.py:3 make", 14 << 20, 3),
               ("(no stack recorded)", 1024, 1)])
        assert "at the peak of allocated memory, by line of Python" in out, out
        assert "job.py:3 make, 3 blocks" in out, out
        with open(f"{folder}/f") as file:
            folded = file.read().splitlines()
        totals = {}
        for line in folded:
            stack, size = line.rsplit(" ", 1)
            for n in (6, 7):
                if f"job.py:{n};" in stack:
                    totals[n] = totals.get(n, 0) + int(size)
        equal(totals, {6: 4 << 20, 7: 10 << 20})


@test
def a_snapshot_has_operator_module_and_lines():
    with tempfile.TemporaryDirectory() as folder:
        run(JOB, "--stacks", "all", "--snapshot", f"{folder}/a", "--perfetto",
            f"{folder}/p.json", folder=folder)
        blocks, events = load(f"{folder}/a")
        equal(sorted(lines(e["frames"]) for e in events
                     if e["action"] == "alloc"),
              [[(3, "make"), (7, "<module>")], [(3, "make"), (8, "<module>")],
               [(6, "forward"), (9, "<module>")]])
        assert all(e["frames"] for e in events), events
        added = next(e for e in events if lines(e["frames"])[0][0] == 6)
        equal([(f["filename"], f["name"]) for f in added["frames"][:2]],
              [("operator", "aten::add"), ("module", "Net")])
        with open(f"{folder}/p.json") as file:
            slices = [e for e in json.load(file)["traceEvents"]
                      if e["ph"] == "b"]
        kept = next(e for e in slices if e["name"] == "aten::add")
        equal(kept["args"], {"bytes": 4 << 20, "GPU": 0, "module": "Net",
                             "tensor": f"uint8 {4 << 20}",
                             "stack": f"{folder}/job.py:6 forward\n"
                                      f"{folder}/job.py:9 <module>"})
        # Without --stacks: operator and module.
        run(JOB, "--snapshot", f"{folder}/b", folder=folder)
        _, events = load(f"{folder}/b")
        assert all(e["frames"] for e in events), events
        equal([lines(e["frames"]) for e in events], [[]] * len(events))


@test
def the_history_that_a_script_records_is_used():
    with tempfile.TemporaryDirectory() as folder:
        script = f"{folder}/job.py"
        with open(script, "w") as file:
            file.write(HISTORY)
        subprocess.run([MEMSIM, "run", "-q", "--json", f"{folder}/out.json",
                        "--", sys.executable, script, f"{folder}/its.pickle"],
                       check=True, timeout=300)
        # Its own snapshot is as on a real GPU.
        held, events = load(f"{folder}/its.pickle")
        want = [(3, "make"), (6, "<module>")]
        assert want in [lines(b["frames"]) for b in held], held
        # The report has the same lines, for that time.
        with open(f"{folder}/out.json") as file:
            device = json.load(file)["ranks"][0]["devices"][0]
        equal(blocks(device), [
            (1024, None),
            (4 << 20, [f"{script}:3 make", f"{script}:6 <module>"]),
            (16 << 20, None)])
        # A replay of that snapshot keeps its frames.
        subprocess.run([MEMSIM, "replay", "-q", f"{folder}/its.pickle",
                        "--torch", "2.11.0", "--snapshot", f"{folder}/again"],
                       check=True, timeout=300, stdout=subprocess.DEVNULL)
        again, replayed = load(f"{folder}/again")
        equal(sorted(lines(b["frames"]) for b in again),
              sorted(lines(b["frames"]) for b in held))
        equal([(e["action"], lines(e["frames"])) for e in replayed],
              [(e["action"], lines(e["frames"])) for e in events
               if e["action"] != "snapshot"])


if __name__ == "__main__":
    main()
