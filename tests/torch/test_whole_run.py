# SPDX-License-Identifier: Apache-2.0
# What a recording does not contain is noted, what an evaluation keeps is found, and
# what the peak depends on is said for inputs of all sorts. It starts runs of its
# own.
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

TRAIN = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
what = sys.argv[1:]
model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.Adam(model.parameters())
loaders = [DataLoader(TensorDataset(torch.randn(count, 512)), batch_size=64)
           for count in (512, 640)]

def train():
    for x, in loaders[0]:
        model(x.cuda()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

def evaluate(keep):
    kept = []
    with torch.no_grad():
        for x, in loaders[1]:
            out = model(x.cuda()).repeat(16, 1)
            if keep == "list":
                kept.append(out)
            elif keep == "cat":
                kept = [torch.cat([*kept, out])]
            elif keep == "losses":
                kept = [torch.cat([*kept, out[:8, 0]])]
            else:
                kept = [out]
train()
for word in what:
    if word == "save":
        torch.save(model.state_dict(), "saved.pt")
    else:
        evaluate(word)
        train()
"""

SIZES = """
import sys, torch
from torch import nn
if sys.argv[1] == "images":
    model = nn.Conv2d(3, 32, 3, padding=1).cuda()
    make = lambda n: torch.randn(2, 3, n, n, device="cuda")
else:
    model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
    make = lambda n: torch.randn(10 * n, 16, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for n in map(int, sys.argv[2:]):
    model(make(n)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def run(script, *words):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "json")
        subprocess.run(
            [MEMSIM, "run", "-q", "--gpu", "t4", "--json", path, "--",
             sys.executable, "-c", script, *words], check=True, cwd=folder,
            stdout=subprocess.DEVNULL)
        with open(path) as file:
            result = json.load(file)
    return result, result["ranks"][0]["devices"][0]


def said(result, words):
    return any(words in note for note in result["notes"])


@test
def a_loader_that_was_not_used_and_a_missing_checkpoint_are_noted():
    result, _ = run(TRAIN)
    assert said(result, "a data loader of 10 batches was built and not used")
    assert said(result, "no checkpoint was saved")


@test
def an_evaluation_and_a_checkpoint_that_were_recorded_are_not():
    result, device = run(TRAIN, "none", "save")
    assert not said(result, "was built and not used"), result["notes"]
    assert not said(result, "no checkpoint was saved"), result["notes"]
    equal(device.get("evaluation_growth"), None)


@test
def what_an_evaluation_keeps_is_found():
    for keep, form in ("list", "blocks"), ("cat", "tensor"):
        _, device = run(TRAIN, keep)
        growth = device["evaluation_growth"]
        equal(growth["call_bytes"], 64 * 16 * 512 * 4)
        equal(growth["kinds"][0]["form"], form)
        assert "growth" not in device, device["growth"]


@test
def losses_that_an_evaluation_keeps_are_too_small_to_tell():
    _, device = run(TRAIN, "losses")
    equal(device.get("evaluation_growth"), None)


def follows(what, dimension, of):
    sizes = 64, 96, 120, 80, 112, 72, 104, 88  # the last step has no end
    _, device = run(SIZES, what, *map(str, sizes))
    law = device["input_law"]
    equal(law["dimension"], dimension)
    equal(law["longest"], of(max(sizes)))
    _, device = run(SIZES, what, "64", "640")
    peak, n = device["peak_allocated_bytes"], of(640)
    told = (law["constant_bytes"] + law["token_bytes"] * n
            + law["square_bytes"] * n * n)
    assert abs(told - peak) < 0.01 * peak, (law, peak)


@test
def the_peak_follows_the_size_of_images():
    follows("images", "value", lambda side: 3 * side * side)


@test
def the_peak_follows_the_number_of_nodes():
    follows("nodes", "sample", lambda n: 10 * n)


EPISODES = """
import io, sys, torch
from torch import nn
what = sys.argv[1]
big = lambda: torch.zeros(1 << 25, device="cuda")  # above a step
class Big:
    def __reduce__(self):
        big()
        return dict, ()
model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step != 1:
        continue
    if what == "evaluation":
        with torch.no_grad():
            model(torch.randn(1 << 16, 512, device="cuda"))
    elif what == "teacher":
        with torch.no_grad():
            nn.Linear(512, 512).cuda()(torch.randn(1 << 16, 512, device="cuda"))
    elif what == "saving":
        torch.save(Big(), io.BytesIO())
    elif what == "loading":
        file = io.BytesIO()
        torch.save(torch.zeros(1 << 25), file)
        file.seek(0)
        torch.load(file, map_location="cuda")
"""


@test
def the_episode_of_the_peak_is_told():
    for what in "evaluation", "saving", "loading":
        _, device = run(EPISODES, what)
        equal(device["peak"]["episode"], what)
    for what in "teacher", "nothing":
        _, device = run(EPISODES, what)
        assert "episode" not in device["peak"], (what, device["peak"])


main()
