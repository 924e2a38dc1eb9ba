#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/from-collect on files of collect.py's form, with made-up figures."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from suite import TOP, main

TOOL = TOP / "tools/from-collect"
MIB = 1 << 20

STEPS = [("context", 1000, 0), ("first tensor", 1002, 2),
         ("first kernel", 1012, 2), ("cublas fp32", 1060, 22),
         ("cublas bf16", 1061, 22), ("cublaslt", 1062, 22),
         ("cublas on a second stream", 1082, 42), ("cudnn conv fp32", 1120, 62),
         ("cudnn batch norm", 1121, 62), ("sdpa default", 1130, 70),
         ("cufft", 1134, 72), ("cusolver", 1374, 72),
         ("nccl all_reduce, 1 rank", 1860, 72)]
ENV = {"torch": "2.11.0+cu130", "cudnn": 91900,
       "properties": {"name": "NVIDIA H100 80GB HBM3",
                      "total_memory": str(81079 * MIB)},
       "nvml": {"driver": "580.1"}}
JOB = {"model": "gpt2", "batch": 8, "seq": 1024, "prec": "amp", "opt": "adamw",
       "ckpt": 0}
PEAKS = [dict(JOB, peak_allocated=5, peak_reserved=7, event_ms=[1.0]),
         dict(JOB, batch=512, oom="CUDA out of memory.", peak_allocated=1,
              peak_reserved=2),
         dict(JOB, model="resnet50", error="ImportError: torchvision")]


class FromCollect(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        self.write("context.json", json.dumps(
            [dict(step=s, used=u * MIB, reserved=r * MIB, allocated=0)
             for s, u, r in STEPS] + [dict(step="nccl", error="none")]))
        self.write("env.json", json.dumps(ENV))
        self.write("peaks.jsonl", "".join(json.dumps(p) + "\n" for p in PEAKS))

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def run_tool(self, what, *more):
        return subprocess.run([TOOL, what, self.folder, *more], text=True,
                              capture_output=True)

    def card(self, *more):
        done = self.run_tool("gpu", *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_a_card_s_file(self):
        card = self.card()
        self.assertEqual(card["base"], "NVIDIA H100 80GB HBM3")
        self.assertEqual(card["memory_bytes"], 81079 * MIB)
        # Two contexts, the other one with its first kernel, which is 10 MiB.
        self.assertEqual(card["context_bytes"], 495 * MIB)
        self.assertEqual(card["context_torch_bytes"], 505 * MIB)
        self.assertEqual(card["cublas_bytes"], 30 * MIB)
        self.assertEqual(card["streams_bytes"], 0)
        self.assertEqual(card["cudnn_bytes"], 19 * MIB // 2)
        self.assertEqual(card["cufft_bytes"], 2 * MIB)
        self.assertEqual(card["cusolver_bytes"], 240 * MIB)
        self.assertEqual(card["nccl_first_bytes"], 486 * MIB)
        self.assertIn("580.1", card["sources"][0]["source"])

    def test_without_the_environment_the_process_was_alone(self):
        (self.folder / "env.json").unlink()
        self.assertEqual(self.run_tool("gpu").returncode, 1)
        card = self.card("--base", "h100")
        self.assertEqual(card["context_bytes"], 1000 * MIB)

    def test_a_process_that_had_ended_is_not_subtracted(self):
        nvml = {"total": 81559 * MIB, "used": 480 * MIB + 1010 * MIB}
        self.write("env.json", json.dumps(dict(ENV, nvml=nvml)))
        self.assertEqual(self.card()["context_bytes"], 1000 * MIB)
        nvml["used"] = 480 * MIB + 505 * MIB
        self.write("env.json", json.dumps(dict(ENV, nvml=nvml)))
        self.assertEqual(self.card()["context_bytes"], 495 * MIB)

    def test_steps_that_failed_are_left_out(self):
        self.write("context.json", json.dumps(
            [dict(step=s, used=u * MIB, reserved=r * MIB)
             for s, u, r in STEPS[:4]]))
        self.assertNotIn("cudnn_bytes", self.card())

    def test_peaks_are_rows_for_the_runner(self):
        done = self.run_tool("peaks", "--gpu", "h100")
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 2 + 3)
        self.assertTrue(lines[2].startswith("gpt2-b8-s1024-amp-adamw,h100,"))
        self.assertTrue(lines[2].endswith(",peak_allocated,5,B,0"))
        self.assertTrue(lines[4].startswith("gpt2-b512"))
        self.assertTrue(lines[4].endswith(",oom,1,,0"))

    def test_bad_files_are_named(self):
        self.write("peaks.jsonl", "{}\n")
        done = self.run_tool("peaks", "--gpu", "h100")
        self.assertEqual(done.returncode, 1)
        self.assertIn("peaks.jsonl:1:", done.stderr)
        self.write("context.json", "[")
        self.assertIn("context.json", self.run_tool("gpu").stderr)


if __name__ == "__main__":
    main()
