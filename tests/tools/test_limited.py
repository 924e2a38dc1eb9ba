#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/limited.py: a job that takes too long is ended, with its children."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from suite import TOP, main

sys.path.insert(0, str(TOP / "bench"))
import limited  # noqa: E402


def is_running(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Limited(unittest.TestCase):
    def setUp(self):
        limited.GRACE_S = 0.2

    def test_what_ends_in_time_is_as_usual(self):
        done = limited.run_limited(["sh", "-c", "echo out; exit 3"], 60,
                                   stdout=subprocess.PIPE, text=True)
        self.assertEqual((done.stdout, done.returncode), ("out\n", 3))

    def test_children_end_with_it(self):
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch) / "pid"
            with self.assertRaises(subprocess.TimeoutExpired):
                limited.run_limited(
                    ["sh", "-c", f"trap '' TERM; sleep 60 & echo $! > {file}; "
                     "wait; sleep 60"], 0.5)
            child = int(file.read_text())
        for _ in range(100):
            if not is_running(child):
                return
            time.sleep(0.05)
        os.kill(child, 9)
        self.fail("the child goes on")


if __name__ == "__main__":
    main()
