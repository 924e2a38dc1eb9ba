#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Slow: thousands of trials of optimizers.
"""src/memsim/search: spaces, prices, what is left out, optimizers. Trials are
answered by formulas here; tests/cli/search runs processes."""
import itertools
import math
import os
import pathlib
import random
import sys
import tempfile
import unittest

import suite

sys.path[:0] = [str(suite.TOP / "src/memsim"),
                *map(str, suite.TOP.glob(
                    ".search-venv/lib/python*/site-packages"))]
from search import SearchError, command, expression, front  # noqa: E402
from search import main, measure, output, price, prune  # noqa: E402
from search import search as loop  # noqa: E402
from search import space as spaces  # noqa: E402
from search import store, strategies, submit, toml_file, trials  # noqa: E402
from search import values  # noqa: E402
from search.objective import Objective  # noqa: E402

GIB = 1 << 30


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)

    def space(self, text, options=None):
        path = self.dir / "space.toml"
        path.write_text(text)
        return spaces.Space(toml_file.TomlFile(str(path)), options)

    def refused(self, text, words):
        with self.assertRaises(SearchError) as caught:
            self.space(text).points()
        self.assertIn(words, str(caught.exception))


class Expressions(unittest.TestCase):
    def value(self, text, **names):
        return expression.Expression(text).value(names)

    def test_values(self):
        names = {"tp": 2, "pp": 4, "gpu": "l4"}
        for text, want in [("tp * pp == 8", True), ("pp % tp", 0),
                           ("tp ** 3 - 1", 7), ("-tp + 1", -1),
                           ("1 < tp <= 2", True), ("1 < tp < 2", False),
                           ("tp == 1 or pp", 4), ("tp and 0", 0),
                           ("not tp", False), ("gpu in ('l4', 'a10')", True),
                           ("max(tp, pp) // 3", 1), ("log2(pp)", 2),
                           ("tp if pp > 4 else pp", 4), ("gpu != 'l4'", False)]:
            self.assertEqual(self.value(text, **names), want, text)

    def test_what_is_refused(self):
        for text in ["__import__('os')", "tp.real", "(lambda: 1)()", "[i for i "
                     "in tp]", "tp[0]", "print(1)", "max()", "1 +", "b'x'",
                     "f'{tp}'", "tp := 1", "None", "max(*tp)", "1j",
                     "tp @ tp", "tp is tp", "x" * 2000, "(" * 900 + ")" * 900]:
            with self.assertRaises(expression.ExpressionError, msg=text):
                expression.Expression(text)

    def test_values_that_are_none(self):
        for text in ["1 / 0", "2 ** 65", "'a' * 1000000000", "'a' < 1",
                     "1e300 ** 60", "log2(0)", "tp + 1", "1 in 2"]:
            with self.assertRaises(expression.ExpressionError, msg=text):
                expression.Expression(text).value({})


class Spaces(Scratch):
    def test_ranges(self):
        for given, want in [
                ({"from": 1, "to": 4}, [1, 2, 3, 4]),
                ({"from": 0, "to": 1, "step": 0.25}, [0, .25, .5, .75, 1]),
                ({"from": 1, "to": 9, "scale": "pow2"}, [1, 2, 4, 8]),
                ({"from": 1, "to": 1000, "scale": "log", "count": 4},
                 [1, 10, 100, 1000]),
                ({"from": 1e-4, "to": 1e-2, "scale": "log", "count": 3},
                 [1e-4, 1e-3, 1e-2]), ([True, False], [True, False]), (3, [3])]:
            self.assertEqual(values.read(given), want)
        for given in [[], [1, 1], {"from": 2, "to": 1}, {"from": 1},
                      {"from": 3, "to": 9, "scale": "pow2"},
                      {"from": 1, "to": 8, "scale": "log"}, [math.nan],
                      {"from": 1, "to": math.inf}, {"from": 0, "to": 1,
                                                    "step": 0}, [[1]],
                      {"from": 1, "to": 2, "scale": "x"}, ["a\0"],
                      {"from": 1, "to": 1e9}, {"from": 1, "to": 2, "by": 1}]:
            with self.assertRaises(values.ValuesError, msg=given):
                values.read(given)

    def test_points_keep_the_constraints(self):
        space = self.space('''
            constraints = ["tp * pp * dp == world", "batch % dp == 0"]
            [constants]
            world = 8
            [names]
            tp = { from = 1, to = 8, scale = "pow2" }
            pp = { from = 1, to = 8, scale = "pow2" }
            dp = { from = 1, to = 8, scale = "pow2" }
            batch = [4, 8]
            ''')
        want = [dict(zip(("tp", "pp", "dp", "batch"), p))
                for p in itertools.product([1, 2, 4, 8], [1, 2, 4, 8],
                                           [1, 2, 4, 8], [4, 8])
                if p[0] * p[1] * p[2] == 8 and p[3] % p[2] == 0]
        self.assertEqual(space.points(), want)

    def test_errors_name_the_line(self):
        for text, words in [
                ("names.b = [1]\n\nconstraints = ['b / (b - 1) == 1']",
                 "space.toml:3: 'b / (b - 1) == 1' with b=1: division by zero"),
                ("[names]\nb = [1]\nc = { from = 5, to = 1 }",
                 "space.toml:3: 'c': from 5 is above to 1"),
                ("[names]\nb = [1, 2]\n[constants]\nb = 1",
                 "space.toml:4: 'b' is in [names] too"),
                ("names.a-b = [1, 2]\nnames.a_b = 1", "is in [names] too"),
                ("[names]\nb = [1, 2]\n[memory]\nmore = ['x']",
                 "space.toml:4: 'x' is not a name of this file"),
                ("[names]\nb = ['x', 'y']\n[memory]\nmore = ['b']",
                 "have no order"),
                ("[names]\nb = [1, 2]\n[memory]\nmore = ['b']\nless = ['b']",
                 "'b' is in more and in less"),
                ("symmetric = [['a', 'b']]\n[names]\na = [1]\nb = [2]",
                 "symmetric names have the same values"),
                ("dominates = ['b=1']\n[names]\nb = [1, 2]", "no '<'"),
                ("constraints = 3\n[names]\nb = 1", "not a list of texts"),
                ("names = 3", "'names' is not a table"),
                ("", "no names"), ("[names]\n'a b' = 1", "is not a name"),
                ("[names]\nargs = 1", "{args} stands for all names"),
                ("[names]\na = { from = 1, to = 1000 }\nb = { from = 1, to = "
                 "1000 }", "more than 200000 points")]:
            self.refused(text, words)

    def test_an_old_python_without_tomli(self):
        known, toml_file.tomllib = toml_file.tomllib, None
        try:
            self.refused("names.b = 1", "pip install tomli")
        finally:
            toml_file.tomllib = known

    def test_words(self):
        space = self.space('''
            [names]
            batch = [4]
            fused = [true, false]
            [memsim]
            nnodes = [2]
            [environment]
            A = ["x y"]
            ''', ["nnodes"])
        job = command.Job(space, "memsim", ["--gpu=l4"],
                          ["p", "{args}", "-b{batch}"])
        point = space.points()[0]
        self.assertEqual(
            job.run_words(point, "r"),
            ["memsim", "run", "-q", "--kill-with-memsim", "--json=r",
             "--gpu=l4", "--nnodes=2", "--", "p", "--fused", "-b4"])
        self.assertEqual(job.environment(point), {"A": "x y"})
        self.assertEqual(job.command_words({**point, "fused": False}),
                         ["p", "-b4"])
        self.assertEqual(job.key(point), job.key(dict(point)))
        self.assertNotEqual(job.key(point), job.key({**point, "A": "z"}))

    def test_a_changed_script_is_another_trial(self):
        script = self.dir / "train.py"
        script.write_text("1")
        space = self.space("names.b = [1]")
        words = ["python", str(script), "{b}"]
        before = command.Job(space, "memsim", [], words).key({"b": 1})
        script.write_text("2")
        self.assertNotEqual(
            command.Job(space, "memsim", [], words).key({"b": 1}), before)


class Prices(Scratch):
    def test_published_table(self):
        """Runs of 5 minutes on 1 to 64 nodes, at $98.5 for a node-hour."""
        runs = {1: 65, 2: 120, 4: 127, 8: 149, 16: 158, 32: 111, 64: 78}
        node = price.Prices("98.5/node", None, None).of("any")
        total = sum(count * node.cost(5 / 60, 8 * nodes, nodes)
                    for nodes, count in runs.items())
        self.assertEqual(f"{total / 1000:.2f}", "107.34")

    def test_of_a_part_of_a_node(self):
        eighth = price.Prices("98.5/8", None, None).of("any")
        self.assertAlmostEqual(eighth.cost(2, 4, 1), 98.5)
        for bad in ("98.5/0", "1/-8", "1/8.0", "1/"):
            with self.assertRaises(SearchError, msg=bad):
                price.Prices(bad, None, None)

    def test_files(self):
        path = self.dir / "prices.json"
        path.write_text('{"h100": {"on-demand": 3, "spot": {"node": 16}},'
                        '"l4": 0.5, "a10": {"node": 4}}')

        def cost(kind, gpu):
            found = price.Prices(str(path), kind, str.lower).of(gpu)
            return found and found.cost(2, 8, 1)
        self.assertEqual(cost(None, "h100"), 48)
        self.assertEqual(cost(None, "v100"), None)
        with self.assertRaises(SearchError):
            cost("reserved", "h100")
        self.assertEqual(cost("spot", "h100"), 32)
        self.assertEqual(cost("spot", "a10"), 8)
        for bad in ['{"l4": -1}', '{"l4": Infinity}', '{"l4": "x"}', "[]",
                    "{", '{"l4": true}', '{"l4": {"node": {"node": 1}}}']:
            path.write_text(bad)
            with self.assertRaises(SearchError, msg=bad):
                cost(None, "l4")


class Formula:
    """A runner whose trials are answered by TELL(point)."""

    def __init__(self, tell):
        self.tell, self.running, self.job = tell, {}, self
        self.limit_s = None
        self.build = "1 (b)"
        self.count = 0

    def key(self, point):
        return repr(sorted(point.items()))

    def has_room(self):
        return not self.running

    def start(self, trial):
        self.running[0] = (trial,)

    def wait(self):
        trial, = self.running.pop(0)
        self.count += 1
        trial.told = self.tell(trial.point)
        return trial, True

    def load(self, key):
        return None

    def save(self, key, record):
        pass


class Nothing:
    def trial(self, search, trial):
        pass

    def update(self, search):
        pass


def told_of(gib, step_ns, compute_ns=None, gpus=1, tokens=1.0):
    """What a trial with these figures tells, on 80 GiB."""
    fits = gib <= 80
    told = {"outcome": "fits" if fits else "oom", "gpu": "h100", "gpus": gpus,
            "peak_used_bytes": int(gib * GIB), "capacity_bytes": 80 * GIB,
            "headroom_bytes": max(0, int((80 - gib) * GIB))}
    if fits:
        told.update(step_ns=step_ns, compute_ns=compute_ns or step_ns,
                    tokens_per_second=tokens * 1e9 / step_ns)
    return told


TRAINING = '''
dominates = ["recompute=1 < recompute=0"]
symmetric = [["first", "second"]]
[names]
batch = [1, 2, 3, 4, 6, 8, 12]
recompute = [0, 1]
shard = [1, 2, 4]
first = [0, 1]
second = [0, 1]
pad = [0, 1]
[memory]
more = ["batch"]
less = ["recompute", "shard"]
[time]
more = ["batch", "recompute"]
[limits]
headroom = "5%"
[objective]
goal = "GOAL"
batch = "batch"
'''


def training(seed):
    """A job whose figures keep what TRAINING declares, and are else drawn."""
    draw = random.Random(seed)
    base, sample = draw.uniform(1, 60), draw.uniform(1, 30)
    table = {key: draw.uniform(0.5, 2) for key in itertools.product(
        [1, 2, 4], [0, 1], [0, 1, 2])}

    def tell(point):
        batch, shard = point["batch"], point["shard"]
        factor = table[shard, point["pad"], point["first"] + point["second"]]
        kept = 0.4 if point["recompute"] else 1
        compute = 1e6 * factor * batch * (1.3 if point["recompute"] else 1)
        return told_of((base + sample * batch * kept) / shard + point["pad"],
                       compute + 5e5 * shard * factor, compute, shard,
                       tokens=batch)
    return tell


class Pruning(Scratch):
    def search(self, text, tell, is_on=True, strategy="exhaustive", patience=0,
               prices=None):
        space = self.space(text)
        objective = Objective(space, None, prices or price.Prices(
            "2", None, None))
        pruner = prune.Pruner(space, objective, is_on)
        points = pruner.order(space.points())
        runner = Formula(tell)
        made = strategies.make(strategy, space, points, str(self.dir),
                               "journal", 1)
        found = loop.Search(objective, made, pruner, runner, runner, Nothing(),
                            None, patience)
        found.run()
        self.assertEqual(len(found.trials) + len(found.pruned),
                         len(points) if not patience else
                         len(found.trials) + len(found.pruned))
        return found

    def test_the_answer_is_that_of_all_points(self):
        """Spaces of 336 points, five objectives, 3 jobs each, in order and at
        random."""
        saved = kinds = 0
        for goal, seed, strategy in itertools.product(
                ["time", "tokens/s", "cost", "gpus", "batch"], range(3),
                ["exhaustive", "random"]):
            text, tell = TRAINING.replace("GOAL", goal), training(seed)
            whole = self.search(text, tell, False)
            found = self.search(text, tell, True, strategy)
            self.assertEqual(len(whole.trials), 336)
            best = [s.answers()[0].value if s.answers() else None
                    for s in (whole, found)]
            self.assertEqual(*best, (goal, seed))
            saved += len(found.pruned)
            kinds |= sum({"memory": 1, "rule": 2, "symmetric": 4,
                          "time": 8}[kind] for kind in
                         {kind for _, kind, _ in found.pruned})
        self.assertEqual(kinds, 15)  # each kind was used
        self.assertGreater(saved, 30 * 336 / 5)

    def test_a_rule_that_does_not_hold_changes_the_answer(self):
        """So the comparison above can fail."""
        text = ('dominates = "fast=1 < fast=0"\n[names]\nfast = [0, 1]\n'
                'batch = { from = 1, to = 100 }')

        def tell(point):
            return told_of(1, 1e6 * point["batch"] / (1 + point["fast"]))
        whole, found = (self.search(text, tell, is_on)
                        for is_on in (False, True))
        self.assertEqual(whole.answers()[0].point["fast"], 1)
        self.assertEqual(found.answers()[0].point["fast"], 0)

    RANGE = """
constraints = ["batch * x <= 16"]
[names]
x = { from = 0.5, to = 20.0 }
lr = { from = 1e-5, to = 1e-1, scale = "log" }
batch = [1, 2, 4]
[memory]
more = ["batch", "x", "lr"]
"""

    def drawn(self, strategy, is_on=True, limit=150):
        """A search of the best, which is batch 4, x 3 and lr 1e-3; 6 GiB a
        sample and x."""
        space = self.space(self.RANGE)

        def tell(point):
            return told_of(6 * point["batch"] * point["x"],
                           1e6 * (1 + abs(point["x"] - 3) +
                                  abs(math.log10(point["lr"]) + 3) +
                                  4 - point["batch"]))
        pruner = prune.Pruner(space, Objective(space), is_on)
        made = strategies.make(strategy, space, pruner.order(space.points()),
                               str(self.dir), "journal", 1)
        runner = Formula(tell)
        found = loop.Search(Objective(space), made, pruner, runner, runner,
                            Nothing(), limit)
        found.run()
        for trial in found.trials:
            self.assertLessEqual(trial.point["batch"] * trial.point["x"], 16)
            self.assertLessEqual(1e-5, trial.point["lr"])
            self.assertLessEqual(trial.point["lr"], 1e-1)
        self.assertEqual(len(found.trials), limit)
        return found

    def test_ranges_without_steps(self):
        found, whole = self.drawn("random"), self.drawn("random", False)
        points = [trial.point for trial in whole.trials]
        self.assertEqual(len({point["x"] for point in points}), 150)
        self.assertLess(min(point["lr"] for point in points), 3e-5)
        self.assertEqual({point["batch"] for point in points}, {1, 2, 4})
        self.assertTrue(found.pruned)
        for point, _, _ in found.pruned:
            self.assertGreater(6 * point["batch"] * point["x"], 80)
        self.assertIn("points of a range", "\n".join(output.text(found, None)))
        self.assertNotIn("points", output.document(found, None, "1", "random"))

    @unittest.skipUnless(strategies.has_optuna(), "Optuna is not here")
    def test_an_optimizer_follows_a_range(self):
        best = self.drawn("tpe", limit=60).answers()[0]
        self.assertLess(best.value, 1.5e6)
        self.assertEqual(best.point["batch"], 4)

    def test_what_is_no_range_without_steps(self):
        space = self.space(self.RANGE)
        self.assertEqual(strategies.choose(None, space, space.points()),
                         "tpe" if strategies.has_optuna() else "random")
        with self.assertRaises(SearchError):
            strategies.choose("exhaustive", space, space.points())
        self.refused("names.a = { from = 1, to = 9, scale = 'log' }", "'count'")
        self.assertEqual(values.read({"from": 0.5, "to": 1.5, "step": 0.5}),
                         [0.5, 1.0, 1.5])
        self.assertIsInstance(values.read({"from": 0, "to": 0.5}), values.Span)
        self.refused("symmetric = [['a', 'b']]\n[names]\na = {from=0.1, to=1}\n"
                     "b = {from=0.1, to=1}", "the same values, in a list")
        space = self.space("constraints = ['a > 1']\n[names]\n"
                           "a = {from = 0.1, to = 1.0}")
        with self.assertRaises(SearchError):
            strategies.make("random", space, space.points(), "", "", 0).ask()

    def test_memory_is_known_by_names(self):
        found = self.search("names.micro_batch = [1, 50, 100, 200]\n"
                            "names.recompute = [true, false]",
                            lambda p: told_of(p["micro_batch"], 1e6))
        self.assertEqual([k for _, k, _ in found.pruned], ["memory"] * 3)
        self.assertEqual(found.outcomes(), {"fits": 4, "oom": 1})
        found = self.search("[memory]\n[names]\nmicro_batch = [1, 100, 200]",
                            lambda p: told_of(p["micro_batch"], 1e6))
        self.assertFalse(found.pruned)

    def test_early_stop(self):
        found = self.search("[names]\nn = { from = 1, to = 100 }",
                            lambda p: told_of(1, 1e6 * p["n"]), patience=20)
        self.assertEqual(len(found.trials), 25)

    def test_what_is_ignored(self):
        found = self.search("[names]\nn = [1, 2]\nm = [1, 2]",
                            lambda p: told_of(p["n"], 1e6))
        self.assertEqual(found.ignored_names(), ["m"])

    def test_all_failed(self):
        found = self.search("[names]\nn = { from = 1, to = 30 }",
                            lambda p: {"outcome": "failed", "gpus": 1,
                                       "gpu": "h100"}, patience=1)
        self.assertEqual(len(found.trials), 10)
        self.assertIn("all failed", found.ended)

    def test_text_and_files(self):
        found = self.search(TRAINING.replace("GOAL", "cost"), training(3))
        lines = "\n".join(output.text(found, 336))
        self.assertRegex(lines, "best: batch=.*for 1e\\+06 tokens")
        told = output.document(found, 336, "1", "exhaustive")
        self.assertIn('"search_schema": 1', output.json_text(told))
        rows = output.csv_text(told).splitlines()
        self.assertEqual(len(rows), len(found.trials) + 1)
        self.assertEqual(output.csv_cell("=1+1"), "'=1+1")
        self.assertEqual(output.csv_cell("-1"), "-1")
        self.assertEqual(output.clean("a\x1b[2Jb"), "a\\x1b[2Jb")

    def test_trials_of_another_build(self):
        """They count, and the result says so."""
        found = self.search("[names]\nn = [1, 2]", lambda p: dict(
            told_of(p["n"], 1e6), memsim=f"1 ({'ab'[p['n'] - 1]})"))
        self.assertNotIn("another build", "\n".join(output.text(found, 2)))
        for trial in found.trials:
            trial.known = True
        lines = "\n".join(output.text(found, 2))
        self.assertIn("another build of memsim (1 (a));", lines)

    def test_tokens_of_a_step(self):
        """Ranks that share a batch: the space says how many tokens it has."""
        text = ('[names]\ntp = [1, 4]\n[objective]\ngoal = "tokens/s"\n')

        def tell(point):  # each of TP ranks is counted
            return told_of(1, 1e9 / point["tp"] ** 0.5, gpus=4,
                           tokens=1000 * point["tp"])
        found = self.search(text, tell)
        self.assertEqual(found.answers()[0].told["tokens_per_second"], 8000)
        self.assertIn("step_tokens", "\n".join(output.text(found, 2)))
        found = self.search(text + 'step_tokens = "2 * 500"', tell)
        self.assertEqual(found.answers()[0].told["tokens_per_second"], 2000)
        self.assertNotIn("step_tokens", "\n".join(output.text(found, 2)))
        for bad in ('"tp / 0"', '"x"', "true", "[1]", "\"'a'\""):
            with self.assertRaises(SearchError, msg=bad):
                self.search(text + f"step_tokens = {bad}", tell)

    def test_front(self):
        found = self.search(TRAINING.replace("GOAL", "time"), training(5),
                            False)
        best = front.pareto(found.trials)
        for trial in found.answers():
            beaten = any(front.beats(o, trial) for o in found.answers())
            self.assertEqual(trial in best, not beaten)

    def test_sqlite(self):
        self.optuna("tpe")
        space = self.space("[names]\nn = { from = 1, to = 5 }\nk = ['x', 'y']")
        for _ in range(2):  # the second one goes on
            made = strategies.make("tpe", space, space.points(),
                                   str(self.dir), "sqlite", 0)
            for i in range(10):
                made.tell(made.ask(), float(i))
            self.assertIsNone(made.ask())
        self.assertEqual(len(made.study.trials), 20)
        self.assertTrue((self.dir / "optuna.sqlite").exists())

    def optuna(self, sampler):
        try:
            strategies.import_optuna(sampler)
        except SearchError as error:
            self.skipTest(str(error))

    def check_optimizer(self, sampler):
        """It finds the best point of 400 with fewer trials."""
        self.optuna(sampler)
        text = ('constraints = ["a != 7 or b != 7"]\n[names]\n'
                'a = { from = 0, to = 19 }\nb = { from = 0, to = 19 }')

        def tell(point):
            return told_of(1, 1e6 * (1 + (point["a"] - 13) ** 2 +
                                     (point["b"] - 5) ** 2))
        found = self.search(text, tell, strategy=sampler, patience=40)
        self.assertLess(len(found.trials), 300)
        self.assertLessEqual(found.answers()[0].value, 3e6)
        again = self.search(text, tell, strategy=sampler, patience=40)
        self.assertLessEqual(again.answers()[0].value, 3e6)

    def test_tpe(self):
        self.check_optimizer("tpe")
        self.assertTrue((self.dir / "optuna.journal").exists())

    def test_cmaes(self):
        self.check_optimizer("cmaes")

    def test_all_points_by_an_optimizer(self):
        self.optuna("tpe")
        text = TRAINING.replace("GOAL", "time").replace(
            "batch = [1, 2, 3, 4, 6, 8, 12]", "batch = [1, 8]")
        whole = self.search(text, training(1), False)
        found = self.search(text, training(1), True, "tpe")
        self.assertEqual(whole.answers()[0].value, found.answers()[0].value)


class Submitting(unittest.TestCase):
    def test_script_of_an_array(self):
        script = submit.array_script("/a b/list", "/out-%a")
        self.assertIn("#SBATCH --output=/out-%a\n#SBATCH --requeue\n", script)
        self.assertIn("$((SLURM_ARRAY_TASK_ID + 1))p\" '/a b/list')\"", script)
        self.assertIn(" --trial ", script)

    def test_engines(self):
        self.assertEqual(submit.engine("slurm --time 1 -p x").options,
                         ["--time", "1", "-p", "x"])
        self.assertEqual(submit.engine("srun {}").text, "srun {}")
        self.assertRaises(SearchError, submit.engine, "srun")
        self.assertEqual(submit.tasks_of("12_0 \n12_3\n\n"), {"12_0", "12_3"})


class Stores(Scratch):
    def test_what_is_kept(self):
        kept = store.Store(str(self.dir / "s"))
        kept.save("k", {"measure": {"outcome": "fits"}})
        self.assertEqual(kept.load("k")["measure"], {"outcome": "fits"})
        self.assertIsNone(kept.load("other"))
        for damaged in ("", "{", "[]", '{"format": 9}', '{"format": 1}'):
            (self.dir / "s/trials/k.json").write_text(damaged)
            self.assertIsNone(kept.load("k"), damaged)
        with self.assertRaisesRegex(SearchError, f"process {os.getpid()}"):
            store.Store(str(self.dir / "s"))
        kept.close()
        store.Store(str(self.dir / "s")).close()

    def test_cpu_parts(self):
        cpus = sorted(os.sched_getaffinity(0))
        parts = trials.cpu_parts(1)
        self.assertEqual(parts, [set(cpus)])
        for count in (2, 3, 7, 64):
            parts = trials.cpu_parts(count)
            self.assertEqual(len(parts), count)
            self.assertTrue(all(part and part <= set(cpus) for part in parts))

    def test_members(self):
        self.assertEqual(measure.member_count("0,4-7,9"), 6)
        self.assertEqual(measure.member_count("0-120:8,121"), 17)
        self.assertEqual(measure.member_count(None), 1)

    def test_options(self):
        options, run, words = main.parse(
            ["memsim", "s.toml", "--jobs=2", "--no-prune", "--", "--gpu=l4",
             "--", "python", "--", "x"])
        self.assertEqual((options.jobs, options.no_prune), (2, True))
        self.assertEqual((run, words), (["--gpu=l4"], ["python", "--", "x"]))


if __name__ == "__main__":
    suite.main()
