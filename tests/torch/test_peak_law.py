# SPDX-License-Identifier: Apache-2.0
# What the peak depends on is said, and holds for a longer sample than those that
# were recorded. It starts runs of its own.
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

SCRIPT = """
import sys, torch
inner = torch.nn.Sequential(
    torch.nn.Embedding(1000, 256), torch.nn.Linear(256, 1024), torch.nn.GELU(),
    torch.nn.Linear(1024, 256))
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        h = self.inner(x)
        if sys.argv[1] == "attention":
            h = torch.softmax(h @ h.transpose(1, 2), -1) @ h
        return h
model = Model().cuda()
optimizer = torch.optim.Adam(model.parameters())
for length in map(int, sys.argv[2:]):
    x = torch.randint(0, 1000, (8, length), device="cuda")
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
LENGTHS = 512, 1024, 768, 640, 900, 1000, 700, 800


def report(what, *lengths, memory="80GiB", longest=4096, status=0):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "json")
        done = subprocess.run(
            [MEMSIM, "run", "-q", "--json", path, "--memory", memory,
             *([f"--input-max={longest}"] if longest else []), "--",
             sys.executable, "-c", SCRIPT, what, *map(str, lengths)])
        assert done.returncode == status, done.returncode
        with open(path) as file:
            return json.load(file)


def device(*words, **options):
    return report(*words, **options)["ranks"][0]["devices"][0]


def follows(what, degree, error):
    law = device(what, *LENGTHS)["input_law"]
    peak = device(what, 512, 4096, longest=None)["peak_allocated_bytes"]
    assert law["degree"] == degree, law
    assert abs(law["peak_allocated_bytes"] - peak) < error * peak, (law, peak)


@test
def a_peak_that_is_linear_in_the_length():
    follows("mlp", 1, 0.005)


@test
def a_peak_with_the_square_of_the_length():
    follows("attention", 2, 0.005)


@test
def a_step_with_the_longest_sample_is_played_to_the_byte():
    """The square is hardly there in short samples: their peaks have another
    law."""
    law = device("attention", 128, 192, 160, 256, 224, 144, 240, 176)["input_law"]
    peak = device("attention", 512, 4096, longest=None)["peak_allocated_bytes"]
    assert law["replayed"], law
    assert abs(law["peak_allocated_bytes"] - peak) <= 4096, (law, peak)


@test
def a_longest_sample_that_does_not_fit_has_a_status():
    told = report("attention", *LENGTHS, memory="2GiB", status=123)
    law = told["ranks"][0]["devices"][0]["input_law"]
    assert law["fits"] is False, law
    equal(told["verdict"], "input")


@test
def samples_of_one_length_have_no_law():
    told = report("mlp", *[512] * 6, status=122)
    assert "input_law" not in told["ranks"][0]["devices"][0]
    equal(told["verdict"], "unknown")


@test
def the_longest_sample_may_have_been_recorded():
    told = report("mlp", *[512] * 6, longest=512)
    law = told["ranks"][0]["devices"][0]["input_law"]
    assert law["fits"] and law["peak_allocated_bytes"] == \
        told["ranks"][0]["devices"][0]["peak_allocated_bytes"], law


@test
def a_dimension_that_does_not_differ_is_not_guessed():
    told = report("mlp", *LENGTHS, longest="sample=64", status=122)
    equal(told["verdict"], "unknown")


main()
