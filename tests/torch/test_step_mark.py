# SPDX-License-Identifier: Apache-2.0
# --step-mark says what a step is, and a job of which too little is known does not
# fit. It starts runs of its own.
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

# A program without modules and optimizers: 4 MiB are kept by each step.
SCRIPT = """
import sys, torch
from work import outer
kept = []

def train_step():
    x = torch.ones(1024, 1024, device="cuda")
    kept.append(x @ x)

class Trainer:
    @classmethod
    def one(cls):
        train_step()
    def all(self, count):
        for _ in range(count):
            self.one()

if sys.argv[1] == "outer":
    for _ in range(int(sys.argv[2])):
        outer(train_step)
else:
    Trainer().all(int(sys.argv[2]))
"""
WORK = """
def inner(function):
    function()

def outer(function):
    inner(function)
    return inner
"""


def run(*options, what="own", steps=12, script=SCRIPT, command=None):
    """The exit status and the JSON."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("train.py", script), ("work.py", WORK)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        path = os.path.join(folder, "json")
        train = os.path.join(folder, "train.py")
        command = command or [sys.executable, train, what, str(steps)]
        done = subprocess.run(
            [MEMSIM, "run", "-q", "--gpu", "t4", "--memory", "512MiB", "--json",
             path, *options, "--",
             *(word.replace("TRAIN", train) for word in command)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path) as file:
            return done.returncode, json.load(file)


def whole_steps(result):
    return len(result["ranks"][0]["steps"])


def growth(result):
    return result["ranks"][0]["devices"][0]["growth"]


@test
def a_function_of_the_script_is_a_step():
    for name in ("train_step", "__main__.train_step", "Trainer.one",
                 "train.Trainer.one"):
        status, result = run("--step-mark", name)
        equal(status, 0)
        equal(result["verdict"], "grows")
        equal(whole_steps(result), 12)
        equal(growth(result)["step_bytes"], 4 << 20)


@test
def memory_ends_in_the_step_that_was_said():
    _, result = run("--step-mark", "train_step")
    said = growth(result)
    assert said["replayed"] and said["lasts_least_steps"] == \
        said["lasts_most_steps"], said
    status, result = run("--step-mark", "train_step", steps=500)
    equal(status, 120)
    equal(whole_steps(result), said["lasts_least_steps"])


@test
def a_function_of_a_module_is_a_step():
    status, result = run("--step-mark", "work.outer", what="outer", steps=7)
    equal(status, 0)
    equal(whole_steps(result), 7)


@test
def a_method_that_a_module_imports_late_is_a_step():
    late = """
import sys, types, torch
class Late(types.ModuleType):
    def __getattr__(self, name):
        if name != "Model":
            raise AttributeError(name)
        import work_late
        return work_late.Model
class Base:
    def generate(self):
        torch.ones(1024, 1024, device="cuda")
part = types.ModuleType("work_late")
part.Model = type("Model", (Base,), {})
sys.modules["late"], sys.modules["work_late"] = Late("late"), part
def main():
    for _ in range(6):
        part.Model().generate()
main()
"""
    _, result = run("--step-mark", "late.Model.generate", script=late)
    equal(whole_steps(result), 6)


@test
def calls_inside_a_call_are_no_steps():
    nested = """
import torch
def step(depth):
    torch.ones(1024, 1024, device="cuda")
    if depth:
        step(depth - 1)
for _ in range(8):
    step(2)
"""
    _, result = run("--step-mark", "step", script=nested)
    equal(whole_steps(result), 8)
    equal(result["verdict"], "fits")


@test
def marks_go_before_optimizer_steps():
    script = """
import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def epoch():
    for _ in range(3):
        model(torch.ones(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
for _ in range(4):
    epoch()
"""
    _, result = run(script=script)
    equal(whole_steps(result), 12)
    _, result = run("--step-mark", "epoch", script=script)
    equal(whole_steps(result), 4)


@test
def a_function_that_was_not_called_is_unknown():
    status, result = run("--step-mark", "no_such_step")
    equal(status, 122)
    equal(result["verdict"], "unknown")
    assert "--step-mark" in result["why"], result["why"]


@test
def a_job_of_many_steps_of_which_few_were_recorded_is_unknown():
    status, result = run("--steps", "1000", "--step-mark", "train_step",
                         steps=3)
    equal((status, result["verdict"]), (122, "unknown"))
    status, result = run("--steps", "3", "--step-mark", "train_step", steps=3)
    equal((status, result["verdict"]), (0, "fits"))


@test
def a_job_without_steps_does_not_fit():
    status, result = run("--steps", "1000")
    equal((status, result["verdict"]), (122, "unknown"))
    equal(result["job_steps"], 1000)
    status, result = run()
    equal((status, result["verdict"], result["no_steps"], result["why"]),
          (0, "unknown", True, "no step was recorded"))
    assert any("--whole-job" in note for note in result["notes"]), \
        result["notes"]


@test
def a_job_without_steps_passes_no_gate():
    status, result = run("--fail-above", "90")
    equal((status, result["verdict"], result["exit_status"]),
          (122, "unknown", 122))
    status, result = run("--fail-above", "1")
    equal((status, result["verdict"]), (121, "over-limit"))


@test
def a_job_that_is_whole_fits():
    status, result = run("--whole-job", "--fail-above", "90")
    equal((status, result["verdict"]), (0, "fits"))
    assert "no_steps" not in result
    equal([note for note in result["notes"] if "step" in note], [])
    # what grows no longer matters
    status, result = run("--whole-job", "--step-mark", "train_step")
    equal((status, result["verdict"]), (0, "fits"))
    equal(result["ranks"][0]["devices"][0]["growth"]["step_bytes"], 4 << 20)


@test
def a_job_that_is_killed_in_a_step_does_not_fit():
    killed = SCRIPT.replace("x = torch", "if len(kept) == 9: "
                            "import os; os.kill(os.getpid(), 9)\n"
                            "    x = torch")
    status, result = run("--step-mark", "train_step", script=killed)
    equal((status, result["verdict"]), (137, "failed"))
    equal(whole_steps(result), 9)
    status, result = run(script=killed, command=[
        "sh", "-c", f"{sys.executable} TRAIN own 12; true"])
    equal((status, result["verdict"]), (125, "failed"))


main()
