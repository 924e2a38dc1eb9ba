#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/truth: every result on record has a command that makes it, a sweep
names what differs, and the batches are those of timm's search."""
import sys
import types
import unittest

from suite import TOP, main, program

sys.path.insert(0, str(TOP / "bench/truth"))
import environments  # noqa: E402
import sweep  # noqa: E402


def decayed(batch):
    """timm's search: the next smaller batch, two steps in a power of two."""
    base = 1 << ((batch - 1).bit_length() - 1)
    step = max(base // 2, 1)
    return base + (batch - base - 1) // step * step


class Sweep(unittest.TestCase):
    def test_every_result_has_a_command(self):
        made = {(table, environments.listed()[environment]["torch"],
                 row["id"], row["metric"])
                for table, environment, rows in sweep.parts()
                for row in rows}
        for table in sweep.tables():
            for row in sweep.read(
                    sweep.DATA / "results" / f"{table}.csv"):
                self.assertIn((table, *sweep.key(row)), made)

    def test_environments_are_used(self):
        used = {line["environment"]
                for line in sweep.read(environments.HERE / "sweep.csv")}
        used |= set(program("bench/truth/batches").ENVIRONMENTS.values())
        self.assertEqual(used, set(environments.listed()))

    def test_what_differs_is_named(self):
        record = sweep.read(sweep.DATA / "results/own_softmax.csv")
        self.assertEqual([], list(sweep.differences("own_softmax", record)))
        record[0]["ours_bytes"] = "1"
        differs = list(sweep.differences("own_softmax", record))
        self.assertEqual(["differs"], [line[0] for line in differs])
        missing = list(sweep.differences("own_softmax", record[1:]))
        self.assertEqual(["not run"], [line[0] for line in missing])

    def test_done_rows_are_not_run_again(self):
        rows = [{"id": "a", "metric": "used"}, {"id": "b", "metric": "used"}]
        done = [{"torch": "2.5.1+cu124", "id": "a", "metric": "used"}]
        self.assertEqual(rows[1:], sweep.missing(rows, "bare-2.5.1", done))
        self.assertEqual(rows, sweep.missing(rows, "bare-2.6.0", done))


MIB = 1 << 20


class Used(unittest.TestCase):
    """What is used, the figure of nvidia-smi, beside what others measured."""

    def test_published_figures_are_near(self):
        """Within 1 % or 150 MiB."""
        rows = [row for table in sweep.tables()
                for row in sweep.read(sweep.DATA / "results" / f"{table}.csv")
                if row["metric"] == "used"]
        self.assertGreaterEqual(len(rows), 8)
        for row in rows:
            real = float(row["published_bytes"])
            self.assertLess(abs(float(row["ours_bytes"]) - real),
                            max(real / 100, 150 * MIB), row["id"])

    def test_the_goals_on_an_h200_are_reached(self):
        """Allocated and reserved equal, used within 16 MiB
        (doc/evidence/truth.md)."""
        card = program("bench/card/run")
        rows = sweep.read(TOP / "bench/card/results.csv")
        self.assertEqual(len(rows), 22)
        self.assertEqual(sorted(r["note"] for r in rows), [""] * 22)
        for goal, reached, needed in card.goals_check(rows):
            self.assertGreaterEqual(reached, needed, goal)
        beside = [r for r in rows if r["outside_real"] and r["outside_ours"]]
        self.assertGreaterEqual(len(beside), 18)
        for row in beside:
            self.assertLessEqual(
                abs(card.difference(row, "outside")), 16 * MIB, row["job"])


class Batches(unittest.TestCase):
    def test_the_next_batch_is_the_one_before_in_the_search(self):
        larger = program("bench/truth/batches").larger
        batch = 1024
        while batch > 1:
            self.assertEqual(batch, larger(decayed(batch)))
            batch = decayed(batch)

    def test_rows_at_the_start_of_a_search_say_nothing(self):
        row = {"phase": "infer", "gpu": "g", "torch": "t", "layout": "nchw",
               "compiled": "eager", "batch": "512"}
        rows = [row, {**row, "batch": "256"}, {**row, "compiled": "dynamo"},
                {**row, "phase": "train", "batch": "8"}]
        self.assertEqual(rows[1:2], program("bench/truth/batches").counted(rows))

    def test_the_attempt_before_the_next_batch_is_made_where_there_was_one(self):
        row = {"model": "m", "img_size": "224", "layout": "nhwc",
               "torch": "2.4.0", "batch": "256", "first": 1024}
        job_of = program("bench/truth/batches").job_of
        args = types.SimpleNamespace(options="fast-norm")
        self.assertEqual("m 224 nhwc,fast-norm 512 384 256",
                         job_of(args, row))
        self.assertEqual("m 224 nhwc,fast-norm 1024 768",
                         job_of(args, {**row, "batch": "768"}))


class BatchEnds(unittest.TestCase):
    def test_tables_are_compared_below_both_first_batches(self):
        ends = program("bench/truth/batch_ends")
        one = {"a": 1024, "b": 512, "c": 256, "d": 768, "e": 64}
        other = {"a": 512, "b": 512, "c": 384, "d": 512, "f": 64}
        # OTHER begins at 512, so "a", "b" and "d" say nothing of it.
        self.assertEqual((1, 0, 1), ends.compare(one, other))
        self.assertEqual((1, 0, 0), ends.compare(other, one))

    def test_a_larger_card_is_no_evidence(self):
        ends = program("bench/truth/batch_ends")
        row = {"gpu": "RTX 4090", "torch": "2.9.1", "layout": "nchw",
               "model": "m", "img_size": "224"}
        found = {("RTX 4090", "2.9.1", "nchw"): {("m", "224"): 768},
                 ("RTX 5090", "2.9.1", "nchw"): {("m", "224"): 1024},
                 ("RTX 3090", "2.4.0", "nchw"): {("m", "224"): 1024}}
        self.assertEqual(["RTX 3090 2.4.0 nchw"], ends.ran(found, row, 1024))
        del found["RTX 3090", "2.4.0", "nchw"]
        self.assertEqual([], ends.ran(found, row, 1024))


if __name__ == "__main__":
    main()
