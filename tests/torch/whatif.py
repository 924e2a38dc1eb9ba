# SPDX-License-Identifier: Apache-2.0
"""What `memsim replay` says of a recorded run is what running it again says.
Starts its own runs, so it is not itself to be started under one."""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import sysconfig
import tempfile

from harness import equal, main, test

BUILD = os.environ.get("MEMSIM_BUILD", os.path.join(
    os.path.dirname(__file__), "..", "..", "build"))
MEMSIM = os.path.join(BUILD, "bin", "memsim")
EXAMPLES = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..",
                                        "examples"))
GRANULE = 2 << 20

# Uneven sizes with holes between them, a second stream, an empty_cache(), and
# a small model's steps.
JOB = """
import torch
torch.manual_seed(0)
rows = []
for i in range(150):
    rows.append(torch.empty((20 + 7 * (i % 9)) << 17, device="cuda"))
    if i % 3 == 2:
        rows[i - 1] = None
    if i == 80:
        torch.cuda.empty_cache()
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    z = torch.empty(3 << 20, device="cuda")
z.record_stream(torch.cuda.default_stream())
del z
rows = rows[:40]
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)])
model = model.cuda()
optimizer = torch.optim.AdamW(model.parameters())
for batch in (64, 512, 200, 2048):
    x = torch.randn(batch, 1024, device="cuda")
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def memsim(*arguments, conf=None):
    """(exit status, JSON)"""
    env = dict(os.environ)
    env.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    if conf is not None:
        env["PYTORCH_CUDA_ALLOC_CONF"] = conf
    name = arguments[0]
    done = subprocess.run([MEMSIM, name, "-q", "--json", "-", *arguments[1:]],
                          env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    start = done.stdout.find('{\n\t"schema"')
    if start < 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.returncode, json.loads(done.stdout[start:])


def run(directory, *options, conf=None, job=JOB):
    with open(f"{directory}/job.py", "w") as file:
        file.write(job)
    return memsim("run", *options, "--", sys.executable,
                  f"{directory}/job.py", conf=conf)


def figures(report):
    return [(d["index"], d["peak_allocated_bytes"], d["peak_reserved_bytes"],
             d["peak_used_bytes"]) for rank in report["ranks"]
            for d in rank["devices"]]


def recorded(directory, *options):
    status, report = run(directory, "--force", "-o", f"{directory}/out", *options)
    equal(status, 0)
    return report


@test
def a_run_replays_to_its_own_figures():
    with tempfile.TemporaryDirectory() as directory:
        real = recorded(directory)
        status, replay = memsim("replay", f"{directory}/out")
        equal(status, 0)
        equal(replay["replay"][0]["exact"], True)
        equal(figures(replay), figures(real))


@test
def other_settings_are_as_truly_run():
    confs = ["expandable_segments:True", "max_split_size_mb:21",
             "roundup_power2_divisions:4", "max_split_size_mb:32,"
             "roundup_power2_divisions:[8:2,>:8]"]
    with tempfile.TemporaryDirectory() as directory:
        recorded(directory)
        for conf in confs:
            status, replay = memsim("replay", "--alloc-conf", conf,
                                    f"{directory}/out")
            real_status, real = run(directory, conf=conf)
            equal((conf, status, figures(replay)),
                  (conf, real_status, figures(real)))


# Two of the main job's models, with lengths and batches that take turns.
MODELS_JOB = f"""
import sys, torch, torchvision
import torch.nn.functional as F
sys.path.insert(0, {EXAMPLES!r})
from train_gpt2 import GPT2
torch.manual_seed(0)


def train(model, losses):
    optimizer = torch.optim.AdamW(model.parameters())
    for loss in losses:
        with torch.autocast("cuda", torch.bfloat16):
            value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()


def language(model):
    for length in (1024, 700, 512):
        x = torch.randint(50257, (4, length + 1), device="cuda")
        yield lambda: model(x[:, :-1], x[:, 1:])


def vision(model):
    for batch in (16, 10, 16):
        x = torch.randn(batch, 3, 224, 224, device="cuda")
        y = torch.randint(1000, (batch,), device="cuda")
        yield lambda: F.cross_entropy(model(x), y)


gpt2 = GPT2(layers=2).cuda()
train(gpt2, language(gpt2))
resnet = torchvision.models.resnet18().cuda()
train(resnet, vision(resnet))
"""
CONFIGURATIONS = [
    ([], "max_split_size_mb:32"),
    ([], "roundup_power2_divisions:[64:8,>:2]"),
    ([], "expandable_segments:True"),
    ([], "per_process_memory_fraction:0.045,garbage_collection_threshold:0.7"),
    (["--memory", "3400MiB"], None),
    (["--gpu", "h200"], None),
]


@test
def models_are_as_truly_run():
    with tempfile.TemporaryDirectory() as directory:
        status, _ = run(directory, "--force", "-o", f"{directory}/out", job=MODELS_JOB)
        equal(status, 0)
        for options, conf in CONFIGURATIONS:
            confs = ["--alloc-conf", conf] if conf else []
            status, replay = memsim("replay", *options, *confs,
                                    f"{directory}/out")
            real_status, real = run(directory, *options, conf=conf,
                                    job=MODELS_JOB)
            equal((options, conf, status, figures(replay)),
                  (options, conf, real_status, figures(real)))


LIMITED_JOB = """
import torch
torch.cuda.set_per_process_memory_fraction(0.25, 0)
for device, count in ((0, 60), (1, 40)):
    rows = []
    for i in range(count):
        if i == 8:
            torch.cuda.set_per_process_memory_fraction(0.2, device)
        rows.append(torch.empty((5 + i % 7) << 20, device=f"cuda:{device}"))
        if i % 5 > 1:
            del rows[len(rows) // 2]
"""


@test
def limits_that_a_program_sets_are_kept():
    with tempfile.TemporaryDirectory() as directory:
        two = ["--gpus", "2"]
        status, real = run(directory, *two, "--memory", "6GiB", "--force", "-o",
                           f"{directory}/out", job=LIMITED_JOB)
        equal(status, 0)
        status, replay = memsim("replay", "--memory", "6GiB",
                                f"{directory}/out")
        equal((replay["replay"][0]["exact"], figures(replay)),
              (True, figures(real)))
        for memory in ("5GiB", "4500MiB", "4GiB", "3GiB"):
            status, replay = memsim("replay", "--memory", memory,
                                    f"{directory}/out")
            real_status, real = run(directory, *two, "--memory", memory,
                                    job=LIMITED_JOB)
            equal((memory, status), (memory, real_status))
            if status == 0:
                equal((memory, figures(replay)), (memory, figures(real)))


# Settings that are made on the way.
SETTING_JOB = """
import torch
settings = {0: "max_split_size_mb:24", 61: "expandable_segments:True",
            101: "expandable_segments:False,roundup_power2_divisions:4"}
rows = []
for i in range(150):
    if i in settings:
        torch.cuda.memory._set_allocator_settings(settings[i])
    rows.append(torch.empty((20 + 7 * (i % 9)) << 17, device="cuda"))
    if i % 3 == 2:
        rows[i - 1] = None
"""


@test
def settings_made_at_run_time_are_made_again():
    with tempfile.TemporaryDirectory() as directory:
        status, real = run(directory, "--force", "-o", f"{directory}/out", job=SETTING_JOB)
        equal(status, 0)
        for conf in (None, "roundup_power2_divisions:8"):
            extra = ["--alloc-conf", conf] if conf else []
            status, replay = memsim("replay", *extra, f"{directory}/out")
            real_status, real = run(directory, conf=conf, job=SETTING_JOB)
            equal((conf, status, replay["replay"][0]["exact"], figures(replay)),
                  (conf, real_status, True, figures(real)))


@test
def the_least_memory_is_as_truly_run():
    with tempfile.TemporaryDirectory() as directory:
        recorded(directory)
        _, replay = memsim("replay", "--sweep", "memory=1GiB..16GiB",
                           f"{directory}/out")
        least = replay["replay"][0]["smallest_memory_bytes"]
        status, real = run(directory, "--memory", str(least))
        equal(status, 0)
        status, fitted = memsim("replay", "--memory", str(least),
                                f"{directory}/out")
        equal((status, figures(fitted)), (0, figures(real)))
        status, _ = run(directory, "--memory", str(least - GRANULE))
        equal(status, 120)
        status, _ = memsim("replay", "--memory", str(least - GRANULE),
                           f"{directory}/out")
        equal(status, 120)


@test
def a_snapshot_opens_in_memory_viz_and_replays():
    viz = os.path.join(sysconfig.get_paths()["purelib"], "torch", "cuda",
                       "_memory_viz.py")
    with tempfile.TemporaryDirectory() as directory:
        recorded(directory)
        path = f"{directory}/snapshot.pickle"
        status, whole = memsim("replay", "--snapshot", path, f"{directory}/out")
        equal(status, 0)
        with open(path, "rb") as file:
            data = pickle.load(file)
        reserved = sum(s["total_size"] for s in data["segments"])
        equal(reserved > 0, True)
        for command in ("stats", "trace", "trace_plot", "segment_plot"):
            extra = ["-o", f"{directory}/{command}.html"] \
                if command.endswith("plot") else []
            subprocess.run([sys.executable, viz, command, path, *extra],
                           check=True, stdout=subprocess.DEVNULL)
        status, again = memsim("replay", "--gpu", "h100-sxm-80gb", path)
        equal(status, 0)
        equal(again["replay"][0]["exact"], True)
        equal([f[1:3] for f in figures(again)], [f[1:3] for f in figures(whole)])


@test
def a_run_and_a_report_write_the_same_snapshot_as_a_replay():
    with tempfile.TemporaryDirectory() as directory:
        paths = [f"{directory}/{name}.pickle" for name in "abc"]
        recorded(directory, "--snapshot", paths[0])
        subprocess.run([MEMSIM, "report", "-q", "--snapshot", paths[1],
                        f"{directory}/out"], check=True)
        memsim("replay", "--snapshot", paths[2], f"{directory}/out")
        texts = [pathlib.Path(path).read_bytes() for path in paths]
        equal(len(set(texts)), 1)
        equal(len(texts[0]) > 1000, True)


SNAPSHOT_JOB = """
import sys, torch
torch.cuda.memory._record_memory_history(max_entries=int(sys.argv[2]))
rows = [torch.empty(i << 18, device="cuda") for i in range(1, 40)]
del rows[::2]
rows += [torch.empty(i << 19, device="cuda") for i in range(1, 20)]
torch.cuda.memory._dump_snapshot(sys.argv[1])
"""


def check_snapshot(entries, blocks, complete):
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/torch.pickle"
        with open(f"{directory}/job.py", "w") as file:
            file.write(SNAPSHOT_JOB)
        subprocess.run([MEMSIM, "run", "-q", "--", sys.executable,
                        f"{directory}/job.py", path, str(entries)], check=True)
        status, replay = memsim("replay", path)
        equal(status, 0)
        equal(replay["replay"][0]["exact"], True)
        if blocks:
            equal(replay["replay"][0]["blocks_checked"], blocks)
        equal(any("begins in the middle" in n for n in replay["notes"]),
              not complete)


@test
def torchs_own_snapshot_replays():
    check_snapshot(100000, 58, True)


@test
def a_history_that_lost_its_beginning_replays():
    check_snapshot(70, None, False)


if __name__ == "__main__":
    main()
