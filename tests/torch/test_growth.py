# SPDX-License-Identifier: Apache-2.0
# Programs that keep memory from step to step are found, others are not.
# bench/whole_run/growth does the same with all programs. It starts runs of its
# own, of the programs in MEMSIM_BUILD.
import json
import os
import subprocess
import sys
import tempfile

import growth_runs
from growth_runs import END, ends, predict
from harness import MEMSIM, equal, main, memsim, test

LEAKS = ["losses_with_graph", "inputs_kept", "kept_every_third_step",
         "a_cache_by_concatenation", "outputs_with_graph_in_evaluation",
         "unfrozen_one_by_one", "a_cache_that_spreads"]
INNOCENTS = ["sorted_lengths", "the_last_three_losses", "accumulation",
             "evaluation_every_third_step", "caches_of_generation",
             "unfrozen_once"]


@test
def what_grows_is_found_and_its_end_is_right():
    told = predict(LEAKS)
    end = ends([name for name in LEAKS if name not in growth_runs.NO_END])
    for name in LEAKS:
        assert told[name], f"{name}: nothing was found to grow"
        if name not in end:
            continue
        assert end[name] < END, name
        if told[name]["replayed"]:
            assert abs(told[name]["lasts_most_steps"] - end[name]) <= 1, \
                (name, told[name], end[name])
        else:
            assert (told[name]["lasts_least_steps"] - 1 <= end[name]
                    <= told[name]["lasts_most_steps"] + 1), \
                (name, told[name], end[name])
    assert told["a_cache_that_spreads"]["fragment_bytes"] == 8 << 20, told


@test
def what_only_looks_so_is_not_found():
    equal({name: growth for name, growth in predict(INNOCENTS).items()
           if growth}, {})


SCRIPT = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                            torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept, total = [], 0
if "holes" in sys.argv:       # the heap's looks walk over all of them
    objects = [bytes(1000) for _ in range(100000)]
    del objects[::2]
if "late" in sys.argv:
    with torch.no_grad():
        for _ in range(400):
            model(torch.randn(2, 256, device="cuda"))
for step in range(6 if "six" in sys.argv else 20 if "twenty" in sys.argv else 10):
    out = model(torch.randn(512, 256, device="cuda"))
    if sys.argv[1] == "uneven":       # 1 to 33 nodes of a graph
        for _ in range(step * 7 % 5 * 8 + 1):
            out = out * 1.0
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if sys.argv[1] == "gpu":
        kept.append(out.detach() * 2)
    if sys.argv[1] == "pinned":
        kept.append(torch.ones(1 << 20, dtype=torch.uint8).pin_memory())
    if sys.argv[1] == "host":
        kept.append(torch.ones(1 << 18))
    if sys.argv[1] == "lengths":
        kept.append(torch.ones((step * 7 % 5 + 1) << 16))
    if sys.argv[1] == "sorted":       # the batch of the next step
        ahead = torch.ones(step * step << 12)
    if sys.argv[1] in ("graph", "uneven"):
        total = total + loss
"""
LINE = f":{SCRIPT[:SCRIPT.index('out.detach() * 2')].count(chr(10)) + 1}"


def run(what, *options, status=0, words=()):
    """The JSON of a run that keeps WHAT, and its recording's folder."""
    folder = tempfile.TemporaryDirectory()
    script, report = (os.path.join(folder.name, name)
                      for name in ("script.py", "json"))
    with open(script, "w") as file:
        file.write(SCRIPT)
    done = subprocess.run([MEMSIM, "run", "-q", "--gpu", "t4", "-o",
                           folder.name + "/run", "--json", report, *options,
                           "--", sys.executable, script, what, *words])
    equal(done.returncode, status)
    with open(report) as file:
        return json.load(file), folder


@test
def the_line_of_what_grows_is_named_without_stacks():
    report, _ = run("gpu")
    kinds = report["ranks"][0]["devices"][0]["growth"]["kinds"]
    stack = kinds[0]["stack"].split("\n")[0]
    assert "script.py" + LINE in stack, kinds


@test
def no_stacks_are_taken_where_nothing_grows():
    report, folder = run("nothing")
    records = memsim("trace", folder.name + "/run/process-0000.trace")
    assert "script.py:" not in records


@test
def a_replay_says_what_grows_and_how_long_memory_lasts():
    report, folder = run("gpu")
    path = folder.name + "/replayed"
    memsim("replay", folder.name + "/run", "-q", "--json", path)
    with open(path) as file:
        replayed = json.load(file)
    equal(replayed["verdict"], "grows")
    equal(*(each["ranks"][0]["devices"][0]["growth"]["lasts_most_steps"]
            for each in (report, replayed)))
    done = subprocess.run([MEMSIM, "replay", folder.name + "/run", "-q",
                           "--memory", "256MiB", "--steps", "100000"])
    equal(done.returncode, 123)


@test
def fit_batch_says_that_memory_grows():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "script.py")
        with open(script, "w") as file:
            file.write(SCRIPT.replace("randn(512", "randn(int(sys.argv[2])"))
        words = ["fit-batch", "--no-cache", "--gpu", "t4", "--to", "2",
                 "--memory", "512MiB"]
        command = ["--", sys.executable, script, "gpu", "{}"]
        told = memsim(*words, *command)
        assert "memory grows from step to step: with batch 2 it lasts" in told
        done = subprocess.run([MEMSIM, *words, "-q", "--steps", "4000000",
                               *command], stdout=subprocess.DEVNULL)
        equal(done.returncode, 120)


@test
def growth_on_the_host_is_named_by_kind():
    for what, member, least, most in (
            ("pinned", "pinned_step_bytes", 1 << 20, 1 << 20),
            ("host", "tensors_step_bytes", 1 << 20, 1 << 20),
            ("graph", "objects_step_bytes", 4096, 1 << 16)):
        report, _ = run(what)
        growth = report["host"]["growth"]
        assert least <= growth[member] <= most, (what, growth)
        assert (growth["step_least_bytes"] <= growth[member]
                <= growth["step_most_bytes"]), growth
    report, _ = run("nothing")
    assert "growth" not in report["host"], report["host"]


@test
def growth_by_other_sizes_in_each_step_is_named():
    for what, member, least, most in (
            ("uneven", "objects_step_bytes", 6 << 10, 64 << 10),
            ("lengths", "tensors_step_bytes", 640 << 10, 960 << 10)):
        report, _ = run(what, words=["twenty"])
        growth = report["host"]["growth"]
        assert least <= growth[member] <= most, (what, growth)
        assert (growth["step_least_bytes"] < growth[member]
                < growth["step_most_bytes"]), growth
    report, _ = run("sorted", words=["twenty"])
    assert "growth" not in report["host"], report["host"]
    assert 1024 < report["host"]["growth_least_bytes"] < 3072, report["host"]


@test
def the_hosts_memory_has_to_last_as_well():
    report, _ = run("pinned", "--host-memory", "4GiB", "--steps", "100000",
                    status=124)
    equal(report["verdict"], "host-memory")
    growth = report["host"]["growth"]
    assert 2000 < growth["lasts_steps"] < 4200, report["host"]
    assert (growth["lasts_least_steps"] <= growth["lasts_steps"]
            <= growth["lasts_most_steps"]), growth


@test
def growth_is_seen_where_a_look_at_the_heap_takes_long():
    for words in ["holes"], ["holes", "late"]:
        host = run("graph", words=words)[0]["host"]
        if "growth_unknown" in host:  # few of the last steps had a look
            assert "late" in words, host
            continue
        step_bytes = host["growth"]["objects_step_bytes"]
        assert 4096 <= step_bytes <= 1 << 16, (words, host)
    report, _ = run("nothing", words=["holes"])
    assert "growth" not in report["host"], report["host"]
    assert "growth_unknown" not in report["host"], report["host"]


@test
def too_few_looks_at_the_heap_are_not_silence():
    report, folder = run("graph", words=["six"])
    assert "growth" not in report["host"], report["host"]
    told = "too few looks at the heap to tell whether objects grow: 5 of 7; "
    equal(report["host"]["growth_unknown"], told + "record 8 steps or more")
    assert "too few looks at the heap" in memsim("report", folder.name + "/run")


main()
