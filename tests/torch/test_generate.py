# SPDX-License-Identifier: Apache-2.0
# What a program without an optimizer repeats is a step: a text that it generates, or
# calls that belong together. It starts runs of its own.
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

# Texts of 8 samples, a token at a time behind 64; the mask grows with the text.
GENERATE = """
import sys, torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(1000, 256)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(256, 256)
                                          for _ in range(4))
    def forward(self, input_ids, attention_mask=None, cache=None):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        if cache is not None:
            x = torch.cat([cache, x], 1)
        return x

model = Model().cuda().eval()

@torch.no_grad()
def generate(new):
    ids = torch.zeros(8, 64, dtype=torch.long, device="cuda")
    mask, cache = torch.ones_like(ids), None
    for _ in range(new):
        cache = model(input_ids=ids, attention_mask=mask, cache=cache)
        ids = cache[:, -1, :1].long()
        mask = torch.cat([mask, mask[:, :1]], 1)

for _ in range(int(sys.argv[1])):
    generate(16)
"""

# The same without a cache: each call is given the text so far.
WHOLE = GENERATE.replace("ids = cache[:, -1, :1].long()",
                         "ids, cache = torch.cat([ids, ids[:, :1]], 1), None")

# A call that was captured, and launched as a graph.
GRAPH = """
import torch
model = torch.nn.Linear(256, 256).cuda().eval()
x = torch.zeros(32, 256, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.no_grad():
    for _ in range(3):
        model(x)
    with torch.cuda.graph(graph):
        model(x)
for _ in range(9):
    graph.replay()
"""

# Three calls a step, between which copies go to the card.
OVERLAP = """
import torch
model = torch.nn.Linear(256, 256).cuda()
data = torch.zeros(256, 256).pin_memory()
def step():
    for i in range(4):
        there = data.cuda(non_blocking=True)
        if i:
            with torch.no_grad():
                model(there)
for _ in range(6):
    step()
"""


def run(script, *arguments, options=()):
    """The JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path, program = (os.path.join(folder, x) for x in ("json", "program.py"))
        with open(program, "w") as file:
            file.write(script)
        subprocess.run([MEMSIM, "run", "-q", "--gpu", "h100", "--json", path,
                        *options, "--", sys.executable, program, *arguments],
                       check=True, stdout=subprocess.DEVNULL)
        with open(path) as file:
            return json.load(file)


def whole(result):
    return len(result["ranks"][0]["steps"])


@test
def a_text_is_a_step_and_its_tokens_are_new_ones():
    result = run(GENERATE, "4")
    equal(whole(result), 4)
    rate = result["time"]["throughput"]
    equal((rate["calls"], rate["tokens"]), (16, 8 * 16))
    assert any("a step is 16 calls of Model" in note and "new token" in note
               for note in result["notes"]), result["notes"]


@test
def one_text_has_a_step_for_each_token():
    result = run(GENERATE, "1")
    equal(whole(result), 16)
    rate = result["time"]["throughput"]
    equal((rate["calls"], rate["tokens"]), (1, 8))
    assert any("a step is one call of Model" in note
               for note in result["notes"]), result["notes"]


@test
def a_text_without_a_cache_has_new_tokens():
    for options, calls in (((), 1), (("--step-mark", "generate"), 16)):
        result = run(WHOLE, "4", options=options)
        equal(whole(result), 64 // calls)
        rate = result["time"]["throughput"]
        equal((rate["calls"], rate["tokens"]), (calls, 8 * calls))


@test
def a_marked_text_says_what_a_token_takes():
    result = run(GENERATE, "4", options=("--step-mark", "generate"))
    equal(whole(result), 4)
    equal(result["time"]["throughput"]["tokens"], 8 * 16)
    assert any("a step has 16 calls of Model" in note and "new token of each of 8"
               in note for note in result["notes"]), result["notes"]


@test
def launches_of_a_captured_call_are_steps():
    result = run(GRAPH)
    equal(whole(result), 12)
    equal(result["time"]["throughput"]["samples"], 32)


@test
def calls_between_copies_belong_together():
    result = run(OVERLAP)
    equal(whole(result), 6)
    assert "repeated together" in result["time"]["step_is"]


main()
