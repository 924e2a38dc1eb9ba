#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/search/recorded and chosen: searches in results that are there."""
import contextlib
import io
import itertools
import json
import pathlib
import tempfile
import unittest

import suite

recorded = suite.program("bench/search/recorded")
chosen = suite.program("bench/search/chosen")
GIB = 1 << 30
SPACE = '''
dominates = "recompute=1 < recompute=0"
[names]
batch = [1, 2, 4, 8, 16, 32]
recompute = [0, 1]
pad = [0, 1, 2]
[memory]
more = ["batch"]
less = ["recompute"]
[objective]
goal = "time"
'''


def told_of(batch, recompute, pad):
    """10 GiB a sample, or 6; larger batches are faster by sample here."""
    used = batch * (6 if recompute else 10) * GIB
    fits = used <= 80 * GIB
    told = {"outcome": "fits" if fits else "oom", "gpu": "h100", "gpus": 1,
            "peak_used_bytes": used, "capacity_bytes": 80 * GIB,
            "headroom_bytes": max(0, 80 * GIB - used)}
    if fits:
        told["step_ns"] = told["compute_ns"] = \
            100_000_000 // batch + 1_000_000 * (pad + 5 * recompute)
    return told


class Recorded(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        (self.dir / "trials").mkdir()
        self.space_file = self.dir / "space.toml"
        self.space_file.write_text(SPACE)
        self.results = self.dir / "results.csv"
        self.space = recorded.Space(recorded.TomlFile(str(self.space_file)))

    def record(self, batches):
        points = itertools.product(batches, (0, 1), (0, 1, 2))
        for number, (batch, recompute, pad) in enumerate(points):
            point = {"batch": batch, "recompute": recompute, "pad": pad}
            (self.dir / f"trials/{number}.json").write_text(json.dumps(
                {"format": 1, "point": point, "measure": told_of(**point)}))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            recorded.keep(self.space, self.dir, self.results)
        return out.getvalue()

    def test_decided(self):
        """With 16 out of memory nothing more need be run of 32."""
        told = self.record((1, 2, 16))
        self.assertIn("18 trials", told)
        self.assertIn("and 6 points that are out of memory", told)
        results = recorded.read(self.space, self.results)
        self.assertEqual(results["32", "1", "2"], {"outcome": "oom"})
        self.assertNotIn(("8", "0", "0"), results)

    def table(self):
        results = recorded.read(self.space, self.results)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            recorded.compare(self.space, results, 2, 300)
        return out.getvalue()

    def test_results_come_back(self):
        self.assertIn("36 trials", self.record([1, 2, 4, 8, 16, 32]))
        results = recorded.read(self.space, self.results)
        self.assertEqual(results["8", "1", "2"], told_of(8, 1, 2))
        self.assertEqual(results["16", "0", "0"], told_of(16, 0, 0))

    def test_what_is_left_out_and_found(self):
        """Of 12 points with recomputation that have one without it that fits,
        none is tried; nor of 32, because 16 does not fit."""
        self.record([1, 2, 4, 8, 16, 32])
        results = recorded.read(self.space, self.results)
        whole = recorded.search(self.space, results, "exhaustive", False)
        found = recorded.search(self.space, results, "exhaustive")
        self.assertEqual((len(whole.trials), len(whole.pruned)), (36, 0))
        kinds = [kind for _, kind, _ in found.pruned]
        self.assertEqual(kinds.count("rule"), 12)
        self.assertEqual(kinds.count("memory"), 6)
        for each in whole, found:
            self.assertEqual(each.answers()[0].point,
                             {"batch": 8, "recompute": 0, "pad": 0})
        lines = self.table().splitlines()
        self.assertIn("36 of 36 points are recorded: 24 fits, 12 oom", lines[0])
        self.assertRegex(lines[2], r"^all points +36 +0 +0%  the best point")
        self.assertRegex(lines[3], r"^exhaustive +18 +18 +50%  the best")

    def test_a_part(self):
        """Points without results are no points; a strategy that ends early may
        find a worse one, which is said."""
        self.record([1, 2])
        self.assertIn("12 of 36 points are recorded: 12 fits", self.table())
        results = recorded.read(self.space, self.results)
        whole = recorded.search(self.space, results, "exhaustive", False)
        first = recorded.search(self.space, results, "exhaustive", False,
                                limit=1)
        self.assertRegex(recorded.describe("one", whole, first),
                         r"^one +1 +0 +0%  100\.0% above the best$")


class Chosen(unittest.TestCase):
    def test_sweeps(self):
        """By the means of jobs that were measured several times."""
        rows = [{"id": name, "gpus": "64", "published_ms": published,
                 "ours_ms": ours} for name, published, ours in [
                     ("VM-1.5B-64x-t1d64p1-m8-0", "110", "80"),
                     ("VM-1.5B-64x-t1d64p1-m8-1", "130", "80"),
                     ("VM-1.5B-64x-t2d32p1-m8-2", "100", "90"),
                     ("LF-1b-h100_80gb-64x-s2048-mb8-tps", "1", "1")]]
        found = chosen.sweeps(rows)
        self.assertEqual(list(found), [("1.5B", 64)])
        ours, best, more = chosen.choose(found["1.5B", 64])
        self.assertEqual((ours, best), ("t1d64p1-m8", "t2d32p1-m8"))
        self.assertAlmostEqual(more, 20)

    def test_verdicts(self):
        """A job of many GPUs that ran, and those of the tables of one GPU."""
        found = chosen.verdicts([{"verdict": "oom"}])
        self.assertEqual(found[0], (False, True))
        self.assertGreater(sum(was for was, _ in found), 30)


if __name__ == "__main__":
    suite.main()
