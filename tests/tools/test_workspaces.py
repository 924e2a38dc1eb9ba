#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""data/workspaces/cudnn.csv: what each row says of itself."""
import csv
import unittest

from suite import TOP, main

HEAD = ("operation type math layout groups filter stride channels outputs "
        "height area positions gpu cudnn x w y sums constant align most evidence "
        "source").split()
MEASURED = ("FIDELITY", "KINETO", "V100", "H200")


def rows():
    text = (TOP / "data/workspaces/cudnn.csv").read_text().splitlines()
    found = list(csv.reader(line for line in text if line[:1] != "#"))
    assert found[0] == HEAD, found[0]
    return [dict(zip(HEAD, row, strict=True)) for row in found[1:]]


class Workspaces(unittest.TestCase):
    def test_each_row_says_how_it_is_known(self):
        for row in rows():
            sure = row["source"] in MEASURED or \
                row["source"].rstrip(" 0123456789abcd") in MEASURED
            weak = row["evidence"].startswith(("assumed", "unknown"))
            self.assertNotEqual(sure, weak, row)

    def test_a_measured_row_says_on_which_gpu(self):
        measured = {"FIDELITY": ("9.0", "9"), "KINETO": ("9.0", "9"),
                    "V100": ("7.0", "8"), "H200": ("9.0", "9")}
        for row in rows():
            source = row["source"].rstrip(" 0123456789abcd")
            where = measured.get(row["source"]) or measured.get(source)
            gpu = row["gpu"].removesuffix("/132") if where else row["gpu"]
            self.assertEqual((gpu, row["cudnn"]), where or ("*", "*"))

    def test_one_of_two_halves_was_measured_where_nothing_else_is_said(self):
        for row in rows():
            if "|" in row["type"] and "bf16" in row["type"] and \
                    row["source"] != "KINETO":
                self.assertIn("assumed", row["evidence"], row)

    def test_measured_splits_are_for_that_many_sms(self):
        for row in rows():
            if row["source"] == "H200" and row["operation"] == "wgrad" and \
                    row["sums"] not in ("0", "1N", "8N"):
                self.assertEqual(row["gpu"], "9.0/132", row)

    def test_the_last_row_takes_the_rest(self):
        last = rows()[-1]
        self.assertTrue(all(last[key] == "*" for key in HEAD[:14]))
        self.assertEqual(last["evidence"], "unknown: counted as 0")


if __name__ == "__main__":
    main()
