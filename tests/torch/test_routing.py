# SPDX-License-Identifier: Apache-2.0
# --routing: how often a router chooses each expert, by the seed. It starts runs of
# its own.
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

SCRIPT = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(64, 8)
        self.expert = nn.Linear(64, 256)

    def inner(self, x):
        weights, chosen = self.gate(x).topk(2)
        counts = torch.bincount(chosen.flatten(), minlength=8)
        self.counts = counts.tolist()
        assert (chosen[:, 0] != chosen[:, 1]).all()
        most = counts.max().item()
        return self.expert(x[:most]).relu().sum() + weights.sum()

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Router() for _ in range(2))

    def forward(self, x):
        return sum(layer(x) for layer in self.layers)


model = Model().cuda()
for step in range(2):
    model(torch.randn(4096, 64, device="cuda")).backward()
    print([layer.counts for layer in model.layers])
"""


def run(*options, status=0):
    """The report as JSON, and the counts of each layer, which are the same in
    each step."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "json")
        done = subprocess.run(
            [MEMSIM, "run", "-q", "--json", path, *options, "--",
             sys.executable, "-c", SCRIPT],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == status, done.stderr
        if status == 125:
            return done.stderr, None
        first, second = map(json.loads, done.stdout.splitlines())
        equal(first, second)
        with open(path) as file:
            return json.load(file), first


@test
def even_is_as_without():
    _, plain = run()
    equal(run("--routing", "even")[1], plain)
    equal(set(plain[0]), {1024})


@test
def zipf_has_its_shares():
    _, counts = run("--routing", "zipf:1")
    _, other = run("--routing", "zipf:1", "--seed", "1")
    for layer in counts + other:
        equal(sum(layer), 8192)
        shares = sorted(layer, reverse=True)
        # of 8 experts by 1/r, two different ones a token
        for got, want in zip(shares, (2468, 1636, 1176, 910, 672, 536, 434, 360)):
            assert abs(got - want) < 0.3 * want, shares
    assert counts[0] != counts[1] and counts != other, (counts, other)
    equal(run("--routing", "zipf:1")[1], counts)


@test
def a_file_has_the_shares():
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("1 0 0 0 0 0 0 1\n")
        file.flush()
        equal(run("--routing", file.name)[1], [[4096] + [0] * 6 + [4096]] * 2)


@test
def a_power_law_is_uneven():
    _, counts = run("--routing", "power:1.2", "--seed", "3")
    assert max(counts[0]) > 1.5 * min(counts[0]), counts


@test
def the_peak_of_many_seeds():
    result, _ = run("--routing", "zipf:1.5", "--seeds", "4")
    told = result["routing"]
    equal((told["seeds"], told["out_of_memory"], told["fits"]), (4, 0, True))
    assert told["peak_used_median_bytes"] <= told["peak_used_p95_bytes"] <= \
        told["peak_used_most_bytes"], told


@test
def bad_words_are_refused():
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("1 no\n")
        file.flush()
        for words, what in ((("--routing", "zipf:x"), "number above 0"),
                            (("--routing", "power"), "number above 0"),
                            (("--routing", "nowhere"), "give even, zipf"),
                            (("--routing", file.name), "is no share"),
                            (("--seeds", "3"), "needs --routing")):
            error, _ = run(*words, status=125)
            assert what in error, error


main()
