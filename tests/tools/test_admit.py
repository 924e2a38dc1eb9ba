#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""src/memsim/admit: what sbatch is given, what Slurm's commands print, and what
follows from it. tests/cli/admit_slurm runs the whole."""
import json
import os
import pathlib
import sqlite3
import sys
import tempfile
import unittest
from unittest import mock

import suite

sys.path[:0] = [str(suite.TOP / "src/memsim")]
from admit import AdmitError, database, outcomes, predict  # noqa: E402
from admit import request, slurm, standin  # noqa: E402

SCRIPT = """#!/bin/bash
# a comment
#SBATCH --nodes=2 --ntasks-per-node 4   # of it
#SBATCH --gres=gpu:a100:4,shard:1
module load x
#SBATCH --nodes=9
srun python train.py
"""
# sacct --parsable2 --noheader --format=JobID,JobIDRaw,State,ExitCode,ElapsedRaw,
# TRESUsageInMax
SACCT = """\
12|12|COMPLETED|0:0|65|
12.batch|12.batch|COMPLETED|0:0|65|cpu=00:01:00,gres/gpumem=30000M,mem=2G
12.0|12.0|COMPLETED|0:0|60|gres/gpumem=31G,gres/gpuutil=97
13_4|14|FAILED|1:0|5|
13_[5-9]|13|PENDING|0:0|0|
15|15|CANCELLED by 1000|0:0|0|
"""


def told(verdict="fits", peak=10, capacity=80, gpu_bytes=None, outcome="ran"):
    return {"verdict": verdict, "peak_bytes": peak, "refused": 0,
            "capacity_bytes": capacity, "gpu_bytes": gpu_bytes,
            "outcome": outcome, "job": "1", "name": "x"}


class Requests(unittest.TestCase):
    def make(self, text=SCRIPT, **options):
        return request.Request(options, text, [], "x.sbatch")

    def test_script(self):
        job = self.make()
        self.assertEqual((job.nodes, job.tasks, job.per_node), (2, 8, 4))
        self.assertEqual((job.gpu_type, job.gpus), ("a100", 4))
        self.assertTrue(job.uses_srun)

    def test_command_line_wins(self):
        job = self.make(nodes="3-5", ntasks="3")
        self.assertEqual((job.nodes, job.tasks), (3, 3))

    def test_variables_win_over_the_script(self):
        with mock.patch.dict(os.environ, {"SBATCH_GRES": "gpu:2"}):
            self.assertEqual(self.make().gpus, 2)

    def test_gpus(self):
        for options, want in (
                ({"gres": "gpu"}, (None, 1)), ({"gres": "gpu:2"}, (None, 2)),
                ({"gres": "gres:gpu:h100:8"}, ("h100", 8)),
                ({"gres": "gpu:a100:2(S:0)"}, ("a100", 2)),
                ({"gres": "shard:3"}, (None, 0)),
                ({"gpus": "a100:5", "nodes": "2"}, ("a100", 3)),
                ({"gpus-per-node": "h100:4"}, ("h100", 4)),
                ({"gpus-per-task": "1", "ntasks": "4"}, (None, 4)), ({}, (None, 0))):
            job = self.make("#!/bin/sh\n", **options)
            self.assertEqual((job.gpu_type, job.gpus), want, options)

    def test_words(self):
        self.assertEqual(
            request.split(["-N2", "-n", "4", "--wait", "--exclusive", "--gres",
                           "gpu:1", "-H", "--time=5", "x.sh", "-N", "9"]),
            ({"nodes": "2", "ntasks": "4", "wait": None, "exclusive": None,
              "gres": "gpu:1", "H": None, "time": "5"},
             ["-N2", "-n", "4", "--wait", "--exclusive", "--gres", "gpu:1", "-H",
              "--time=5"], ["x.sh", "-N", "9"]))
        self.assertEqual(request.split(["--nodes"])[0], {"nodes": ""})

    def test_heterogeneous(self):
        self.assertIn("heterogeneous", self.make(
            "#!/bin/sh\n#SBATCH hetjob\n").refused())

    def test_broken_quote(self):
        self.assertRaises(AdmitError, self.make, "#SBATCH --comment='x\n")

    def test_filter(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "told")
            for text in ("", "[]", '{"nodes": "1"}'):
                pathlib.Path(path).write_text(text, encoding="utf-8")
                self.assertRaises(AdmitError, request.from_filter, path)
            pathlib.Path(path).write_text(json.dumps(
                {"wrap": "python x.py", "gres": "gpu:2", "argv": []}),
                encoding="utf-8")
            self.assertEqual(request.from_filter(path).gpus, 2)

    def test_srun(self):
        plan = {"run": ["memsim", "run"], "nodes": 2, "tasks": 8}
        self.assertEqual(
            standin.run_words(plan, ["-l", "python", "x.py", "-n"], "r"),
            ["memsim", "run", "--json=r", "--", "srun", "-N", "2", "-n", "8",
             "-l", "python", "x.py", "-n"])
        self.assertEqual(
            standin.run_words(plan, ["-N1", "--ntasks-per-node=1", "x"], "r"),
            ["memsim", "run", "--json=r", "--", "srun", "-N1",
             "--ntasks-per-node=1", "x"])


class Judgements(unittest.TestCase):
    def judge(self, *runs, late=False):
        return predict.judge([{"outcome": o, "steps": s} for o, s in runs], 1,
                             late, "x").verdict

    def test_the_worst_counts(self):
        self.assertEqual(self.judge(("fits", 3), ("oom", 0), ("none", 0)), "oom")
        self.assertEqual(self.judge(("none", 0), ("fits", 3)), "fits")

    def test_failures_are_unknown(self):
        self.assertEqual(self.judge(("fits", 3), ("failed", 2)), "unknown")
        self.assertEqual(self.judge(), "unknown")

    def test_time_over(self):
        self.assertEqual(self.judge(("failed", 2), late=True), "fits")
        self.assertEqual(self.judge(("failed", 0), late=True), "unknown")
        self.assertEqual(self.judge(("oom", 0), late=True), "oom")

    def test_comment(self):
        found = predict.Prediction("fits", figures={
            "peak_used_bytes": (1 << 20) + 1, "step_ns": 12345678})
        self.assertEqual(found.comment(), "memsim=fits gpumem=2M step=12.3ms")


class States(unittest.TestCase):
    def test_sacct(self):
        found = slurm.from_sacct(SACCT)
        self.assertEqual(found["12"]["gpu_bytes"], 31 << 30)
        self.assertEqual(found["12"]["elapsed_s"], 65)
        self.assertEqual(found["13_4"]["raw"], "14")
        self.assertEqual(found["15"]["state"], "CANCELLED")

    def test_scontrol(self):
        found = slurm.from_scontrol(
            "JobId=4 ArrayJobId=1 ArrayTaskId=0 JobState=FAILED ExitCode=3:0 "
            "RunTime=1-00:01:05 Comment=(null)\n"
            "JobId=1 ArrayJobId=1 ArrayTaskId=1-3 JobState=PENDING "
            "ExitCode=0:0 RunTime=00:00:00\n")
        self.assertEqual(list(found), ["1_0"])
        self.assertEqual(found["1_0"]["elapsed_s"], 86465)

    def test_outputs(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "train-13_4[x].out")
            path.write_text("torch.OutOfMemoryError: CUDA out of memory")
            pattern = os.path.join(directory, "%x-%A_%a[x].out")
            task = slurm.from_sacct(SACCT)["13_4"]
            self.assertEqual(outcomes.outcome_of(task, [pattern], "train"), "oom")
            self.assertEqual(outcomes.outcome_of(task, [pattern], "other"),
                             "failed")
            with path.open("a", encoding="utf-8") as file:
                file.write("\n" + "." * outcomes.ENDED_TAIL)
            task["state"] = "COMPLETED"  # the script went on for long
            self.assertEqual(outcomes.outcome_of(task, [pattern], "train"), "ran")


class Comparisons(unittest.TestCase):
    def test_table(self):
        rows = [told(), told(outcome="oom"), told("oom", 79),
                told("oom", 79, outcome="oom"), told(outcome="lost"),
                told("unknown", None, None, outcome="failed"),
                told(gpu_bytes=8), told(gpu_bytes=20)]
        found = outcomes.summary(rows, rows, 1)
        self.assertEqual((found["misses"], found["false_refusals"]), (1, 1))
        self.assertEqual(found["table"]["fits"],
                         {"ran": 3, "oom": 1, "host-memory": 0, "failed": 0})
        self.assertEqual(found["by_share"], [
            {"from_percent": 0, "to_percent": 50, "jobs": 4, "out_of_memory": 1},
            {"from_percent": 95, "to_percent": 100, "jobs": 2,
             "out_of_memory": 1}])
        self.assertEqual(found["predicted_by_measured"], {
            "jobs": 2, "median": 0.875, "least": 0.5, "most": 1.25})
        self.assertIn("misses: 1; false refusals: 1",
                      "\n".join(outcomes.text(found)))


class Databases(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.path = os.path.join(held.name, "made", "x.sqlite")

    def test_an_array_goes_on(self):
        job = request.Request({"array": "1-2"}, "", [], "x")
        kept = database.Database(self.path)
        number = kept.add_prediction(job, predict.Prediction("fits"), False, "")
        kept.set_job(number, "7")
        printed = ["7_1|7|COMPLETED|0:0|1|\n7_2|8|RUNNING|0:0|1|\n",
                   "7_1|7|COMPLETED|0:0|1|\n7_2|8|COMPLETED|0:0|1|\n"]
        with mock.patch.object(slurm, "ask", lambda words: printed.pop(0)):
            self.assertEqual(outcomes.update(kept), 1)
            self.assertEqual(outcomes.update(kept), 0)
        self.assertEqual([row["job"] for row in kept.outcomes()],
                         ["7_1", "7_2"])

    def test_slurm_says_nothing(self):
        kept = database.Database(self.path)
        job = request.Request({}, "", [], "x")
        kept.set_job(kept.add_prediction(job, predict.Prediction("fits"), False,
                                         ""), "7")
        with mock.patch.object(slurm, "ask", lambda words: None):
            self.assertEqual(outcomes.update(kept), 1)

    def test_another_version(self):
        database.Database(self.path)
        with sqlite3.connect(self.path) as connection:
            connection.execute("PRAGMA user_version = 9")
        self.assertRaises(AdmitError, database.Database, self.path)


if __name__ == "__main__":
    suite.main()
