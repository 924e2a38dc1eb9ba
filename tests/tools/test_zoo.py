#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/zoo: a sweep runs every configuration once, those of new models first,
and the CPU is asked only about errors of which it can say something."""
import argparse
import sys
import unittest

from suite import TOP, main, program

sys.path.insert(0, str(TOP / "tests/zoo"))
import sweep  # noqa: E402
import table  # noqa: E402


class Zoo(unittest.TestCase):
    def test_new_models_come_first(self):
        old = next(iter(table.results())).split()
        configs = [{"id": f"{n}", "library": old[0], "model": model}
                   for n, model in enumerate([old[1], "new"] * 9)]
        args = argparse.Namespace(batch=4)
        batches = sweep.Sweep(args, "cuda", print).batches(configs)
        order = [c for batch in batches for c in batch]
        self.assertEqual({c["model"] for c in order[:9]}, {"new"})
        self.assertEqual(sorted(c["id"] for c in order),
                         sorted(c["id"] for c in configs))

    def test_the_same_error_on_another_device(self):
        run = program("tests/zoo/run")
        self.assertTrue(run.same("ValueError: on cuda:0 at a.py:1",
                                 "ValueError: on cpu at a.py:1"))
        self.assertTrue(run.same("ValueError: 1 at a.py:1",
                                 "ValueError: 2 at a.py:1"))
        self.assertFalse(run.same("ValueError: 1 at a.py:1",
                                  "ValueError: 2 at a.py:2"))
        self.assertTrue(run.late({"error": "out of time"}))
        self.assertFalse(run.late({"error": "ValueError: 1 at a.py:1"}))

    def test_configurations_differ(self):
        ids = [c["id"] for c in table.configs()]
        self.assertEqual(len(ids), len(set(ids)))


if __name__ == "__main__":
    main()
