# SPDX-License-Identifier: Apache-2.0
"""Bands of steps. It starts runs of its own."""
import json
import pathlib
import sys
import tempfile

from harness import main, memsim, test

# One convolution on a GPU where whole steps of inference gave its price.
CONVOLUTION = """
import sys, torch
train = sys.argv[1] == "train"
model = torch.nn.Conv2d(256, 256, 3, padding=1, bias=False).cuda().half()
x = torch.randn(128, 256, 56, 56, device="cuda", dtype=torch.half,
                requires_grad=True)
for _ in range(4):
    with torch.set_grad_enabled(train):
        y = model(x)
    if train:
        y.backward(x.detach())
"""


def band(how):
    """The shares of a step that its band reaches below and above it."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.json"
        memsim("run", "-q", "--gpu", "rtx-3090", "--host-speed", "0", "--json",
               out, "--", sys.executable, "-c", CONVOLUTION, how)
        report = json.loads(out.read_text())
    time = report["time"]
    assert time["basis"]["estimated"] > 0.9, time["basis"]
    return (1 - time["low_ns"] / time["step_ns"],
            time["high_ns"] / time["step_ns"] - 1)


@test
def estimates_of_gradients_keep_their_whole_band():
    below, above = band("infer")
    train_below, train_above = band("train")
    assert train_below > below and train_above > 1.5 * above, (
        below, above, train_below, train_above)


main()
