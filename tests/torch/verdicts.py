# SPDX-License-Identifier: Apache-2.0
"""The verdict, the JSON and the exit status of whole runs of the example and of
GPT-2 large (transformers 4.46, in VENV/old). Starts its own runs, so it is not
itself to be started under one."""
import json
import os
import subprocess
import sys
import sysconfig
import tempfile

from harness import Skip, equal, main, test

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("MEMSIM_BUILD", os.path.join(ROOT, "build"))
EXAMPLE = os.path.join(ROOT, "examples", "train_gpt2.py")

LARGE = """
import sys, torch, transformers
half, batch, length = sys.argv[1] == "half", int(sys.argv[2]), int(sys.argv[3])
if half:
    torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = transformers.GPT2LMHeadModel._from_config(
        transformers.GPT2Config(n_embd=1280, n_layer=36, n_head=20),
        attn_implementation="sdpa")
optimizer = torch.optim.Adam(model.parameters())
x = torch.randint(0, 50257, (batch, length), device="cuda")
for step in range(2):
    with torch.autocast("cuda", torch.bfloat16, enabled=not half):
        loss = model(input_ids=x, labels=x).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def run(options, command, **env):
    """(status, what it printed, the JSON) of a run of a Python COMMAND."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "memsim"), "run", "--json", path,
             *options, "--", sys.executable, *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **env})
        with open(path) as file:
            return done.returncode, done.stdout, json.load(file)


ASSUMED = """
import torch
x = torch.randn(1000, 16, device="cuda") @ torch.randn(16, device="cuda")
print(int((x > 0).sum()), x[0].item(), int(x[1].long()))
print(torch.numel(x[x > 0]), x[0].item(), int(x[1].long()))
"""


@test
def a_line_s_values_are_those_that_the_user_assumes():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "assumed.py")
        with open(script, "w") as file:
            file.write(ASSUMED)
        status, text, result = run(
            ["--assume", "assumed.py:5=0.01,assumed.py:99=4"], [script])
    first, second = [line.split() for line in text.splitlines()[:2]]
    equal((status, first[0], first[2]), (0, "500", "0"))
    equal((second[0], round(float(second[1]), 4), second[2]),
          ("10", 0.01, "0"))
    notes = " ".join(result["notes"])
    assert "--assume assumed.py:99 had no effect" in notes, notes
    assert "assumed.py:5 had" not in notes, notes


@test
def a_job_that_fits_says_so():
    status, text, result = run([], [EXAMPLE, "--steps", "2"])
    equal((status, result["verdict"]), (0, "fits"))
    device = result["ranks"][0]["devices"][0]
    peak = float(text.split("peak allocated ")[1].split()[0])
    equal(round(device["peak_allocated_bytes"] / 2**30, 2), peak)


@test
def a_job_that_does_not_fit_dies_as_on_the_card():
    status, text, result = run(["--gpu", "t4"], [EXAMPLE, "--batch", "64"])
    equal((status, result["verdict"]), (120, "oom"))
    assert "torch.OutOfMemoryError: CUDA out of memory." in text, text
    assert "total capacity of 14.56 GiB" in text, text
    assert result["ranks"][0]["devices"][0]["ooms"][0]["requested_bytes"] > 0


@test
def a_limit_is_a_gate():
    status, _, result = run(["--fail-above", "5"], [EXAMPLE, "--steps", "2"])
    equal((status, result["verdict"]), (121, "over-limit"))


@test
def gpt2_large_does_not_fit_40_gb():
    old = os.path.join(os.environ.get("MEMSIM_VENV", ""), "old")
    if not os.path.isdir(old):
        raise Skip("no transformers 4.46 here: tools/test-torch installs it")
    path = os.pathsep.join([old, sysconfig.get_path("purelib")])
    for job in (["mixed", "16", "512"], ["half", "16", "1024"]):
        status, text, result = run(["--gpu", "a100-sxm-40gb"],
                                   ["-c", LARGE, *job], PYTHONPATH=path)
        equal((job, status, result["verdict"]), (job, 120, "oom"))
        assert "torch.OutOfMemoryError: CUDA out of memory." in text, text


if __name__ == "__main__":
    main()
