#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/conformance-diff and tools/on-a-card, with memsim's GPU as the GPU."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from suite import TOP, main

DIFF = TOP / "tools/conformance-diff"
CARD = TOP / "tools/on-a-card"
REAL = TOP / "data/conformance/h200.json"
BUILD = pathlib.Path(os.environ.get("MEMSIM_BUILD", TOP / "build"))
PROGRAMS = BUILD / "tests/capture"


def run(*words, **how):
    return subprocess.run(list(map(str, words)), text=True,
                          capture_output=True, **how)


class Conformance(unittest.TestCase):
    def setUp(self):
        if not (PROGRAMS / "sweep").exists():
            self.skipTest("the programs of tests/capture are not built")
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def test_memsim_answers_as_an_h200(self):
        done = run(DIFF, REAL, "--build", BUILD)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(" 0 differ without a reason", done.stdout)

    def test_a_difference_without_a_reason_is_a_failure(self):
        real = json.loads(REAL.read_text())
        real["answers"]["code of null_freed_async"] = 12345
        path = self.folder / "real.json"
        path.write_text(json.dumps(real))
        done = run(DIFF, path, "--build", BUILD)
        self.assertEqual(done.returncode, 1)
        self.assertIn("code of null_freed_async: 12345, memsim 0",
                      done.stdout)

    def test_bad_answers_are_named(self):
        path = self.folder / "answers.jsonl"
        path.write_text('{"name": "a", "value": 1}\n{"name": "b"}\n')
        done = run(DIFF, "--collect", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("answers.jsonl:2:", done.stderr)

    def test_a_card_s_results_are_packed(self):
        programs = self.folder / "programs"
        programs.mkdir()
        for name in ("card", "error_codes", "sweep"):
            (programs / name).symlink_to(PROGRAMS / name)
        out = self.folder / "out"
        done = run(BUILD / "bin/memsim", "run", "-q", "--gpu", "h200", "--",
                   CARD, out, programs)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        answers = json.loads((out / "answers.json").read_text())
        self.assertEqual(answers["gpu"], "NVIDIA H200")
        self.assertGreater(len(answers["answers"]), 1000)
        self.assertIn("0 failed", (out / "sweep.log").read_text())
        packed = self.folder / "out.tar.gz"
        self.assertLess(packed.stat().st_size, 60 << 20)


if __name__ == "__main__":
    main()
