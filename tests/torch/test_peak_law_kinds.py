# SPDX-License-Identifier: Apache-2.0
# The peak of the largest input, by steps with smaller ones, against a run with it:
# for each of the ways in which the inputs of a job differ. It starts runs of its
# own.
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, main, test

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "input_kinds.py")
TOKENS = 512, 1024, 768, 640, 900, 1000, 700, 800
PACKED = 16384, 32768, 24576, 20480, 28800, 32000, 22400, 25600
SIDES = 256, 512, 384, 320, 448, 480, 352, 416


def device(kind, *sizes, largest=None, options=()):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "json")
        subprocess.run(
            [MEMSIM, "run", "-q", "--json", path, *options,
             *([f"--input-max={largest}"] if largest else []), "--",
             sys.executable, SCRIPT, kind, *map(str, sizes)], check=True)
        with open(path) as file:
            return json.load(file)["ranks"][0]["devices"][0]


def follows(kind, sizes, largest, n, dimension, error=0.002, options=()):
    """A size LARGEST, which is N in DIMENSION, needs what the law says."""
    law = device(kind, *sizes, largest=f"{dimension}={n}",
                 options=options)["input_law"]
    peak = device(kind, sizes[0], largest, options=options)[
        "peak_allocated_bytes"]
    assert law["dimension"] == dimension and law["degree"] == 1, law
    assert abs(law["peak_allocated_bytes"] - peak) < error * peak, (law, peak)
    by_law = law["constant_bytes"] + law["token_bytes"] * n
    assert abs(by_law - peak) < 0.02 * peak, (by_law, peak)


@test
def padding_to_the_longest():
    follows("padded", TOKENS, 4096, 4096, "token")


@test
def packed_sequences():
    follows("packed", PACKED, 131072, 131072, "token")


@test
def images_of_different_sizes():
    follows("images", SIDES, 1024, 3 * 1024 * 1056, "value")


@test
def a_list_of_images_for_a_detector():
    follows("detection", SIDES, 1024, 3 * 1024 * 1024, "value")


@test
def batches_of_as_many_tokens():
    follows("budget", TOKENS, 131072, 131072 + 131072 % 96, "batch-token")


@test
def tokens_that_go_to_experts():
    follows("experts", TOKENS, 4096, 4096, "token")


@test
def tokens_that_go_to_some_experts_more_often():
    """Such a step is not played: the law is that of what tensors ask for."""
    follows("experts", TOKENS, 4096, 4096, "token", error=0.02,
            options=["--routing", "zipf:1.2"])


@test
def micro_batches_of_different_lengths():
    follows("micro", TOKENS, 4096, 4096, "token")


main()
