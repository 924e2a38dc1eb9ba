#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/run: what is told of a program that fails."""
import argparse
import os
import unittest

import suite

runner = suite.program("tests/run")


def told(*script):
    """What is counted and printed of a shell SCRIPT that is a test."""
    args = argparse.Namespace(build="/nowhere", venv="/nowhere")
    return runner.run(["sh", "-c", "\n".join(script)], dict(os.environ), args)


class Told(unittest.TestCase):
    def test_counts_of_a_program(self):
        counts, text = told("echo 3 passed, 0 failed, 1 skipped")
        self.assertEqual(counts, (3, 0, 1))
        self.assertNotIn("status", text)

    def test_a_status_that_the_line_does_not_explain_is_a_failure(self):
        counts, text = told("echo 3 passed, 0 failed", "exit 7")
        self.assertEqual(counts, (3, 1, 0))
        self.assertEqual(runner.failure(text).splitlines()[1:],
                         ["  (status 7)"])

    def test_a_program_without_a_count_is_a_failure(self):
        self.assertEqual(told("echo hello")[0], (0, 1, 0))

    def test_first_failures_are_repeated(self):
        counts, text = told("for i in 1 2 3 4; do echo FAIL: $i; echo why; "
                            "done", "echo 0 passed, 4 failed; exit 1")
        self.assertEqual(counts[1], 4)
        self.assertEqual(runner.failure(text).splitlines()[1:],
                         ["  FAIL: 1", "  FAIL: 2", "  FAIL: 3"])


if __name__ == "__main__":
    suite.main()
