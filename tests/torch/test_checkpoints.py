# SPDX-License-Identifier: Apache-2.0
"""A script's checkpoints stay what they were; floats that it reads fall slowly;
a rank that dies is told.
Starts its own runs, so it is not itself to be started under one: MEMSIM_BUILD
says with what."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

from harness import Skip, equal, main, test

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("MEMSIM_BUILD", os.path.join(ROOT, "build"))

MODEL = """
import math, os, shutil, torch
model = torch.nn.Linear(4, 4).cuda()
loss = model(torch.randn(2, 4, device="cuda")).sum()
loss.backward()
loss = loss.detach()
torch.optim.SGD(model.parameters(), lr=0.1).step()
state = model.state_dict()
def saved(path):
    return torch.load(path)["weight"].shape == (4, 4)
def write(path):
    torch.save(state, path)
"""


class Folder:
    """A folder of checkpoints that were there before the run."""

    def __init__(self, *names):
        self.held = tempfile.TemporaryDirectory()
        self.path = self.held.name
        for name in names:
            os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
            with open(self.at(name), "w") as file:
                file.write(f"the real {name}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.held.cleanup()

    def at(self, name):
        return os.path.join(self.path, name)

    def has_real(self, *names):
        for name in names:
            with open(self.at(name), errors="replace") as file:
                equal(file.read(), f"the real {name}")

    def run(self, code, *options, status=0, model=MODEL):
        """The report on CODE, run here."""
        with open(self.at("job.py"), "w") as file:
            file.write(model + code)
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "memsim"), "run", "-q", *options,
             "-o", self.at("run"), "--force", "--json", self.at("json"), "--",
             sys.executable, "job.py"], text=True, cwd=self.path,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        equal((done.returncode, done.stdout), (status, done.stdout))
        self.output = done.stdout
        with open(self.at("json")) as file:
            return json.load(file)

    def copies(self):
        """What is in the run's directory of the files here."""
        top = self.at("run") + "/files" + os.path.realpath(self.path)
        return sorted(os.path.relpath(os.path.join(at, name), top)
                      for at, _, names in os.walk(top) for name in names)


@test
def saving_a_model_is_no_guess():
    script = """
with torch.no_grad():
    for p in model.parameters():
        p.add_(torch.nn.functional.gelu(p))
big = torch.nn.BatchNorm1d(1000).cuda().train()
big(torch.nn.functional.gelu(torch.randn(4, 1000, device="cuda"))).sum().backward()
torch.save({"model": state, "norm": big.state_dict()}, "model.pt")
"""
    with Folder() as folder:
        equal(folder.run(script)["guesses"], [])
        told = folder.run(script + "n = int(state['weight'].argmax())\n")
        equal([g["where"] for g in told["guesses"]], ["job.py:20"])


@test
def a_checkpoint_stays_and_the_script_reads_its_own():
    with Folder("best.pt", "at/last.ckpt") as f:
        report = f.run("""
write("best.pt")
assert saved("best.pt") and os.path.getsize("best.pt") > 1000
write("new.pt")
write("new.pt")
with open("at/last.ckpt", "a") as file:
    file.write(" and more")
assert open("at/last.ckpt").read() == "the real at/last.ckpt and more"
assert os.environ["MEMSIM"] == "1"
""")
        f.has_real("best.pt", "at/last.ckpt")
        equal(sorted(os.listdir(f.path)),
              ["at", "best.pt", "job.py", "json", "run"])
        assert {"at/last.ckpt", "best.pt", "new.pt"} <= set(f.copies())
        equal(sorted((os.path.basename(x["path"]), x["kept"])
                     for x in report["files"]),
              [("best.pt", True), ("last.ckpt", True), ("new.pt", False)])
        notes = " ".join(report["notes"])
        assert "kept as they were: " in notes and "best.pt" in notes
        assert "written with values that memsim does not compute: " in notes


@test
def an_atomic_save_goes_to_the_copy():
    with Folder("best.pt", "model.bin") as f:
        f.run("""
write("best.pt.tmp")
os.replace("best.pt.tmp", "best.pt")
assert saved("best.pt") and not os.path.exists("best.pt.tmp")
write("model.bin")
os.rename("model.bin", "best.pt")
assert saved("best.pt") and not os.path.exists("model.bin")
os.rename("best.pt", "new.pt")
assert saved("new.pt") and not os.path.exists("best.pt")
""")
        f.has_real("best.pt", "model.bin")


@test
def what_the_run_removes_or_moves_stays():
    with Folder("old.pth", "moved.pt", "step-1/model.bin") as f:
        f.run("""
os.remove("old.pth")
assert not os.path.exists("old.pth")
shutil.rmtree("step-1")
assert not os.path.exists("step-1/model.bin")
os.rename("moved.pt", "kept.pt")
assert open("kept.pt").read() == "the real moved.pt"
assert not os.path.exists("moved.pt")
write("old.pth")
assert saved("old.pth")
try:
    open("moved.pt")
    assert False
except FileNotFoundError:
    pass
""")
        f.has_real("old.pth", "moved.pt", "step-1/model.bin")


@test
def safetensors_and_distributed_checkpoints_are_kept():
    if not importlib.util.find_spec("safetensors"):
        raise Skip("needs safetensors")
    with Folder("model.safetensors", "dcp/__0_0.distcp", "dcp/.metadata") as f:
        f.run("""
import safetensors.torch
import torch.distributed.checkpoint as dcp
safetensors.torch.save_file(state, "model.safetensors")
assert sorted(safetensors.torch.load_file("model.safetensors")) == \\
    ["bias", "weight"]
dcp.save({"model": state}, checkpoint_id="dcp", no_dist=True)
dcp.load({"model": state}, checkpoint_id="dcp", no_dist=True)
""")
        f.has_real("model.safetensors", "dcp/__0_0.distcp", "dcp/.metadata")


@test
def write_through_overwrites():
    with Folder("best.pt") as f:
        report = f.run('write("best.pt")', "--write-through")
        assert os.path.getsize(f.at("best.pt")) > 1000
        equal([x["kept"] for x in report["files"]], [False])
        equal(f.copies(), [])


@test
def without_a_gpu_files_are_the_scripts():
    with Folder("best.pt") as f:
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "memsim"), "run", "-q", "--",
             sys.executable, "-c", "open('best.pt', 'w').write('mine')"],
            cwd=f.path)
        equal(done.returncode, 0)
        with open(f.at("best.pt")) as file:
            equal(file.read(), "mine")


READS = """
losses = []
for read in (loss.item, loss.tolist, lambda: float(loss.cpu()),
             lambda: float(loss.half()), lambda: loss.double().item(),
             lambda: float(loss.bfloat16().cpu())):
    x = read()
    math.log(x), 1 / x
    assert x > 0 and math.isfinite(x)
    losses.append(round(x, 2))
print(losses)
wide = torch.randn(2, 4, device="cuda") @ model.weight
wide = wide.detach()
print(wide.cpu().numpy().std(), wide[0].half().tolist()[0] > 0)
print(torch.arange(3, device="cuda").float().tolist(), wide.argmax(1).tolist())
print(torch.cat([torch.arange(2., device="cuda"), wide[0][:1]]).tolist()[:2])
big = torch.randn(200000, device="cuda").cpu()
print(big.count_nonzero().item())
"""


@test
def floats_fall_slowly_and_are_positive():
    with Folder() as f:
        report = f.run(READS)
        equal(f.output.splitlines(),
              ["[1.0, 0.99, 0.98, 0.97, 0.96, 0.95]", "0.0 True",
               "[0.0, 1.0, 2.0] [0, 0]", "[0.0, 1.0]", "0"])
        assert not any("before it failed" in n for n in report["notes"])


@test
def the_first_value_can_be_chosen():
    with Folder() as f:
        f.run("print(loss.item(), loss.item())", "--unknown-value", "5")
        first, second = map(float, f.output.split())
        assert first == 5 and 4.9 < second < 5


@test
def early_stopping_and_the_scaler_go_on():
    with Folder() as f:
        f.run("""
best, bad = math.inf, 0
scaler = torch.amp.GradScaler("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    with torch.autocast("cuda", torch.float16):
        loss = model(torch.randn(2, 4, device="cuda")).float().sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0,
                                   error_if_nonfinite=True)
    scaler.step(optimizer)
    scaler.update()
    bad = 0 if loss.item() < best else bad + 1
    best = min(best, loss.item())
    assert bad < 3
assert scaler.get_scale() == 65536
""")


@test
def a_guess_has_the_scripts_line():
    with Folder() as f:
        report = f.run("rows = loss.new_ones(9).normal_().nonzero()")
        equal([(g["where"], g["operator"]) for g in report["guesses"]],
              [("job.py:13", "aten::nonzero")])


@test
def a_failure_after_a_read_is_explained():
    with Folder() as f:
        report = f.run("assert loss.item() > 9", status=1)
        equal(report["verdict"], "failed")
        assert any("the command had read 1 value that memsim does not "
                   "compute, last at job.py:13:" in n
                   for n in report["notes"]), report["notes"]
        report = f.run("raise SystemExit(3)", status=3)
        assert not any("had read" in n for n in report["notes"])


RANKS = """
import os, sys, torch, torch.multiprocessing
def work(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29537")
    torch.distributed.init_process_group("nccl", rank=rank, world_size=2)
    torch.cuda.set_device(rank)
    torch.distributed.all_reduce(torch.ones(1, device="cuda"))
    if rank:
        sys.exit(7)
if __name__ == "__main__":
    ranks = [torch.multiprocessing.get_context("spawn").Process(
        target=work, args=(rank,)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
"""


@test
def a_rank_that_its_launcher_forgets_fails_the_run():
    with Folder() as f:
        report = f.run(RANKS, "--gpus", "2", status=125, model="")
        equal(report["verdict"], "failed")
        equal([rank["rank"] for rank in report["ranks"]], [0, 1])
        assert any(note.startswith("rank 1 ended with status 7 after")
                   for note in report["notes"]), report["notes"]


main()
