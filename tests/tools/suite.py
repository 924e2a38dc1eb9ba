# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest cases of a test here, and tells tests/run how many."""
import pathlib
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True


def main():
    cases = unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=0).run(cases)
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    for case, why in result.skipped:
        print(f"skipped: {case.id()}: {why}", file=sys.stderr)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, "
          f"{skipped} skipped")
    sys.exit(failed != 0)
