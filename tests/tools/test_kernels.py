# SPDX-License-Identifier: Apache-2.0
"""What the catalogue of kernels does not know of the supported PyTorch's kernels
(tools/kernels) may only get less.
Slow: it reads libraries of several hundred MB."""
import csv
import os
import unittest

import suite

kernels = suite.program("tools/kernels")
BUILD = os.environ.get("MEMSIM_BUILD", str(suite.TOP / "build"))
SHARED = os.environ.get("MEMSIM_SHARED", str(suite.TOP.parent / "shared"))


def recorded():
    with open(suite.TOP / "tests/kernels/totals.csv", encoding="utf-8") as file:
        return {(r["source"], r["column"]): int(r["kernels"])
                for r in csv.DictReader(file)}


class Totals(unittest.TestCase):
    def test_no_column_knows_less_than_before(self):
        found = kernels.sources([suite.TOP / v for v in kernels.VENVS], SHARED)
        if not found:
            self.skipTest("no PyTorch is set up")
        limits = recorded()
        lines, unused = kernels.totals(BUILD, found)
        for source, column, count in lines:
            with self.subTest(source=source, column=column):
                limit = limits.get((source, column))
                self.assertIsNotNone(
                    limit, f"tests/kernels/totals.csv has no row for {source}")
                self.assertLessEqual(
                    count, limit, f"{source}: kernels without {column}; "
                    "`make kernels` names them")
        if set(found) == {source for source, _ in limits} - {"rows"}:
            self.assertLessEqual(
                len(unused), limits["rows", "unused"],
                "rows of src/kernels that fit no kernel; `make kernels` names "
                "them")


if __name__ == "__main__":
    suite.main()
