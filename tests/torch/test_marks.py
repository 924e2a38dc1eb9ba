# SPDX-License-Identifier: Apache-2.0
"""What a program writes under memsim has memsim's mark, and memsim takes none
of it for a measurement: traces of torch.profiler, memory snapshots,
checkpoints."""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import zipfile

from harness import Skip, equal, main, test

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MEMSIM = pathlib.Path(os.environ.get("MEMSIM_BUILD", ROOT / "build")) / \
    "bin/memsim"
TEXT = "simulated, not measured"
HEAD = """
import os, torch
from torch.profiler import ProfilerActivity, profile
torch.save({"n": 1}, "host.pt")
model = torch.nn.Linear(512, 512).cuda()
x = torch.randn(64, 512, device="cuda")
"""


def memsim(*words, cwd):
    return subprocess.run([MEMSIM, *words], cwd=cwd, text=True,
                          capture_output=True)


def run(script, folder):
    done = memsim("run", "-q", "--gpu", "h100-sxm-80gb", "--", sys.executable,
                  "-c", HEAD + script, cwd=folder)
    assert done.returncode == 0, done.stderr


@test
def a_trace_is_no_measurement():
    with tempfile.TemporaryDirectory() as folder:
        run("""
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as p:
    for _ in range(3):
        model(x).sum().backward()
        p.step()
    torch.cuda.synchronize()
p.export_chrome_trace("trace.json")
""", folder)
        trace = json.loads(pathlib.Path(folder, "trace.json").read_text())
        equal(trace["memsim"], TEXT)
        done = memsim("fit", "trace.json", "-o", "fit.json", cwd=folder)
        equal(done.returncode, 1)
        assert "trace.json: memsim made these times" in done.stderr, done.stderr
        assert not os.path.exists(f"{folder}/fit.json")
        done = memsim("fit", "--eval", "trace.json", cwd=folder)
        equal(done.returncode, 1)
        done = memsim("fit", "--simulated", "trace.json", "-o", "fit.json",
                      cwd=folder)
        assert done.returncode == 0, done.stderr
        fit = json.loads(pathlib.Path(folder, "fit.json").read_text())
        assert TEXT in fit["sources"][0]["text"], fit["sources"]
        said = "the profile was made by memsim: its times are simulated"
        done = memsim("import", "trace.json", "-o", "imported", cwd=folder)
        assert said in done.stdout, done.stdout
        done = memsim("replay", "imported", cwd=folder)
        assert "replayed with memsim's own times" in done.stdout, done.stdout
        assert said in done.stdout and "measured durations" not in done.stdout


@test
def a_snapshot_is_no_gpus():
    with tempfile.TemporaryDirectory() as folder:
        run("""
torch.cuda.memory._record_memory_history()
y = model(x)
torch.cuda.memory._dump_snapshot("memory.pickle")
assert "segments" in torch.cuda.memory._snapshot()
assert torch.cuda.memory_snapshot()[0]["blocks"]
""", folder)
        snapshot = pickle.loads(
            pathlib.Path(folder, "memory.pickle").read_bytes())
        equal(snapshot["memsim"], TEXT)
        done = memsim("replay", "memory.pickle", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "memsim made this snapshot, no GPU did" in done.stdout


@test
def a_checkpoint_says_that_it_was_not_trained():
    with tempfile.TemporaryDirectory() as folder:
        run("""
torch.save(model.state_dict(), "model.pt")
again = torch.load("model.pt", weights_only=True)
assert again["weight"].shape == (512, 512) and again["weight"].is_cuda
""", folder)
        equal(marks_of(f"{folder}/model.pt"), [TEXT])
        # Before the first use of a GPU all values are the program's own.
        equal(marks_of(f"{folder}/host.pt"), [])


def marks_of(path):
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name).decode() for name in archive.namelist()
                if name.endswith("/memsim")]


@test
def safetensors_say_so_too():
    try:
        import safetensors  # noqa: F401
    except ModuleNotFoundError:
        raise Skip("safetensors is not installed") from None
    with tempfile.TemporaryDirectory() as folder:
        run("""
from safetensors import safe_open
from safetensors.torch import save_file
for name, metadata in ("bare", None), ("own", {"a": "b"}):
    save_file(model.state_dict(), name, metadata=metadata)
with safe_open("bare", "pt") as bare, safe_open("own", "pt") as own:
    text = "simulated, not measured"
    assert bare.metadata() == {"format": "pt", "memsim": text}
    assert own.metadata() == {"a": "b", "memsim": text}
""", folder)


if __name__ == "__main__":
    main()
