# SPDX-License-Identifier: Apache-2.0
"""What a script wants of a flag that it reads, by Python's bytecode
(src/capture/py/checks.py), in every Python that is here."""
import glob
import os
import subprocess
import sys
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
JOB = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("checks", sys.argv[1])
checks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checks)

class Flag:
    def __bool__(self):
        frame = sys._getframe(1)
        wanted.append(checks._wanted(frame.f_code, frame.f_lasti))
        return wanted[-1] == 1
    item = __bool__

wanted, flag = [], Flag()

def script():
    assert flag
    assert flag, "x {}".format(1)
    assert not flag, "no"
    assert flag and flag
    assert flag or flag
    if not flag: raise ValueError("a")
    if flag: raise ValueError(f"b {1}")
    if flag.item(): raise ValueError
    if not flag.item():
        raise ValueError("x")
    if flag or flag: raise ValueError("one")
    wanted.append("other")
    while flag: pass
    if flag: return 5
    x = 1 if flag else 2
    y = [flag and 1, bool(flag)]
    if flag: print()
    wanted.append("other")
    with open(sys.argv[1]):
        assert flag
    try:
        assert flag
    finally:
        pass

script()
print(*wanted)
"""
WANTED = "1 1 0 1 1 -1 1 1 0 0 1 0 0 other -1 -1 -1 -1 -1 -1 other 1 1"


def pythons():
    """The newest of each version from 3.8 on that starts."""
    paths = [sys.executable]
    for minor in range(8, 16):
        found = [f"{d}/python3.{minor}" for d in os.get_exec_path()]
        found += glob.glob(os.path.expanduser(
            f"~/.pyenv/versions/3.{minor}.*/bin/python3"))
        paths += [p for p in found if os.path.exists(p)
                  and not p.endswith("shims/" + os.path.basename(p))]
    return paths


class Checks(unittest.TestCase):
    def test_every_python(self):
        for python in pythons():
            done = subprocess.run(
                [python, "-c", JOB, os.path.join(TOP, "src/capture/py/checks.py")],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.stdout.strip(), WANTED, python)


if __name__ == "__main__":
    unittest.main()
