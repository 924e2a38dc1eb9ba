# SPDX-License-Identifier: Apache-2.0
"""A check of values that memsim does not compute finds nothing wrong, whatever
form it has; one of known values does. Loops of flags that --assume says. Starts
runs of its own with the programs of MEMSIM_BUILD."""
import subprocess
import sys

from harness import MEMSIM, main, test

HEAD = """
import torch
x = torch.nn.Linear(64, 64).cuda()(torch.randn(32, 64, device="cuda"))
s = x.sum()
"""
HOLD = HEAD + """
assert (x.abs() >= 0).all()
assert s > 1, f"{s} is too small"
assert not (s < 1), "too small"
assert (s > 1) & (s > 2) and s > 3
assert s > 1 or s > 2
assert (
    s
    > 1
)
if not (s > 1):
    raise ValueError("too small: {}".format(s))
if (s < 1):
    raise ValueError
if bool(s < 1) or (s < 0.7):
    raise ValueError("one of two")
if (s > 1).item() is False:
    pass
def check(ok, text):
    if not ok.item():
        raise RuntimeError(text + " " * 3)
check((s > 1).reshape(1), "reshaped")
with torch.no_grad():
    assert [bool(s > 1) or 1]
assert torch.distributions.Normal(s, s).sample().shape == ()
print("held")
"""
KNOWN = HEAD + """
ones = torch.ones(3, device="cuda")
assert (ones < 1).all(), "known"
"""
LOOP = HEAD + """
rounds = []
for i in range(3):
    n = 0
    while s > 2:
        n += 1
    rounds.append(n)
print(rounds)
"""


def run(text, *words):
    return subprocess.run([MEMSIM, "run", "-q", *words, "--", sys.executable,
                           "-c", text], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


@test
def unknown_values_hold():
    done = run(HOLD)
    assert done.returncode == 0 and "held" in done.stdout, done.stdout


@test
def known_values_do_not():
    done = run(KNOWN)
    assert done.returncode == 1 and "known" in done.stdout, done.stdout


@test
def a_share_of_flags_is_a_loop_of_rounds():
    for share, rounds in ("0.9", [9] * 3), ("0.5", [1] * 3), ("0", [0] * 3):
        done = run(LOOP, "--assume", f"<string>:9={share}")
        assert str(rounds) in done.stdout, done.stdout


if __name__ == "__main__":
    main()
