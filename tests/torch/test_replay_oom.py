# SPDX-License-Identifier: Apache-2.0
"""The replay of an out-of-memory error under expandable segments, which are
refused in small parts, says how much memory was missing. Starts runs of its
own with the programs of MEMSIM_BUILD."""
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, main, test

JOB = """
import torch
kept = [torch.empty(5308694528, dtype=torch.uint8, device="cuda")
        for _ in range(16)]
"""


def oom(*words):
    """The one error of the report that memsim writes, called with WORDS."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        done = subprocess.run([MEMSIM, words[0], "--json", out, *words[1:]],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
        with open(out, encoding="utf-8") as file:
            report = json.load(file)
    found = report["ranks"][0]["devices"][0]["ooms"]
    assert len(found) == 1, found
    assert "A limit that the program set" not in done.stderr, done.stderr
    return found[0]


@test
def an_expandable_segment_lacked_memory():
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "run")
        asked = oom("run", "--gpu", "h100", "-o", kept, "--", "env",
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                    sys.executable, "-c", JOB)["missing_bytes"]
        assert asked > 0
        replayed = oom("replay", kept)["missing_bytes"]
        assert abs(replayed - asked) <= 4 << 20, (replayed, asked)


@test
def a_replay_says_what_the_memory_is_for():
    """As the run does, but for what is not PyTorch's; where a replay differs,
    it says nothing."""
    job = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU()).cuda()
net(torch.randn(4096, 512, device="cuda")).sum().backward()
"""
    with tempfile.TemporaryDirectory() as folder:
        kept, out = f"{folder}/run", f"{folder}/out.json"

        def device(*words):
            subprocess.run([MEMSIM, *words[:1], "-q", "--json", out,
                            *words[1:]], check=True)
            with open(out, encoding="utf-8") as file:
                found = json.load(file)["ranks"][0]["devices"][0]
            found["things_at_peak"] = [
                t for t in found.get("things_at_peak", ()) if "category" in t]
            return found
        run = device("run", "-o", kept, "--", sys.executable, "-c", job)
        names = "things_at_peak", "modules_at_peak", "categories_at_peak"
        replayed = device("replay", kept)
        for name in names:
            assert run[name] and run[name] == replayed[name], (
                name, run[name], replayed.get(name))
        changed = device("replay", kept, "--what-if", "bf16-optimizer")
        assert not changed.get("modules_at_peak"), changed


if __name__ == "__main__":
    main()
