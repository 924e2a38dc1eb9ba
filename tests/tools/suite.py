# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest cases of a test here, and tells tests/run how many."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True


def program(path):
    """The program at PATH of the repository, as a module."""
    loader = importlib.machinery.SourceFileLoader(
        path.replace("/", "_").replace("-", "_"), str(TOP / path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


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
