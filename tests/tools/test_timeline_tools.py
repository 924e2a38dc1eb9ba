#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Slow: the tools are Python with pandas.
"""Other projects' tools read memsim's timelines: mlc-chakra's the Chakra
execution traces, HolisticTraceAnalysis and TraceLens the Kineto export.
HolisticTraceAnalysis also what torch.profiler wrote in a run, where there is a
PyTorch in MEMSIM_VENV or .venv.

The tools are in an environment of their own: MEMSIM_PLAYBACK_VENV, or
.timeline-venv, which `tools/setup timeline` makes. TraceLens is not on PyPI
(the `tracelens` there is another project): it is used where the environment
has AMD-AGI/TraceLens."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from suite import TOP, main

BUILD = pathlib.Path(os.environ.get("MEMSIM_BUILD", TOP / "build"))
TOOLS = pathlib.Path(os.environ.get("MEMSIM_PLAYBACK_VENV",
                                    TOP / ".timeline-venv"))
PYTHON = TOOLS / "bin" / "python"
TORCH = pathlib.Path(os.environ.get("MEMSIM_VENV", TOP / ".venv"),
                     "bin/python")

DECODE = """
import json, sys
from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata, Node, NodeType
from chakra.src.third_party.utils.protolib import decodeMessage, openFileRd
file = openFileRd(sys.argv[1])
head, node, nodes = GlobalMetadata(), Node(), []
decodeMessage(file, head)
while decodeMessage(file, node):
    attr = {a.name: getattr(a, a.WhichOneof("value")) for a in node.attr}
    nodes.append({"id": node.id, "name": node.name,
                  "type": NodeType.Name(node.type),
                  "ctrl": list(node.ctrl_deps), "data": list(node.data_deps),
                  "start": node.start_time_micros,
                  "duration": node.duration_micros, "attr": attr})
print(json.dumps({"version": head.version, "nodes": nodes}))
"""
HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
parts = t.get_temporal_breakdown(visualize=False).iloc[0]
kinds = t.get_gpu_kernel_breakdown(visualize=False)[0]
t.get_idle_time_breakdown(visualize=False)
print(json.dumps({"compute": float(parts["compute_time(us)"]),
                  "kinds": sorted(kinds["kernel_type"])}))
"""
PROFILED = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, schedule
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(3)])
model = model.cuda()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
             schedule=schedule(wait=1, warmup=1, active=3)) as p:
    for _ in range(5):
        model(torch.randn(512, 1024, device="cuda")).sum().backward()
        torch.cuda.synchronize()
        p.step()
p.export_chrome_trace(sys.argv[1])
"""
HTA_PROFILED = """
import json, sys
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/",
                  include_last_profiler_step=True)
parts = t.get_temporal_breakdown(visualize=False).iloc[0]
calls = t.get_cuda_kernel_launch_stats(visualize=False)[0]
t.get_idle_time_breakdown(visualize=False)
t.get_gpu_user_annotation_breakdown(visualize=False)
queue = t.get_queue_length_summary()
print(json.dumps({"compute": float(parts["compute_time(us)"]),
                  "calls": len(calls), "queues": len(queue)}))
"""
TRACELENS = """
import json, sys
from TraceLens import TreePerfAnalyzer
rows = TreePerfAnalyzer.from_file(sys.argv[1]).get_df_gpu_timeline()
print(json.dumps(dict(zip(rows["type"], map(float, rows["time ms"])))))
"""


def profile():
    """Copies in and out, kernels on two streams, an all-reduce."""
    events, host = [], 100
    work = [("MemcpyAsync", "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7,
             8), ("LaunchKernel", "kernel", "gemm", 7, 100),
            ("LaunchKernel", "kernel",
             "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, 50),
            ("LaunchKernel", "kernel", "add", 7, 30),
            ("MemcpyAsync", "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 7,
             5)]
    free = {7: 0, 20: 0}
    for i, (call, category, name, stream, length) in enumerate(work, 5):
        start = max(host + 6, free[stream] + 1,
                    free[7] + 1 if stream == 20 else 0)
        free[stream] = start + length
        events += [{"ph": "X", "cat": "cuda_runtime", "name": "cuda" + call,
                    "pid": 1, "tid": 1, "ts": host, "dur": 4,
                    "args": {"correlation": i}},
                   {"ph": "X", "cat": category, "name": name, "ts": start,
                    "dur": length, "args": {
                        "device": 0, "stream": stream, "correlation": i,
                        "bytes": 4096, "grid": [8, 1, 1],
                        "block": [128, 1, 1], "In msg nelems": 1000,
                        "Collective name": "allreduce", "dtype": "Float",
                        "Group size": 8}}]
        host += 10
    events.append({"ph": "X", "cat": "cuda_runtime",
                   "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1,
                   "ts": host, "dur": max(free.values()) + 10 - host,
                   "args": {"correlation": 50}})
    events.append({"ph": "X", "cat": "user_annotation",
                   "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 90,
                   "dur": max(free.values()) - 70})
    return {"schemaVersion": 1, "traceEvents": events, "deviceProperties": [
        {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85028372480}]}


def has(module):
    return PYTHON.exists() and subprocess.run(
        [PYTHON, "-c", f"import {module}"],
        capture_output=True, check=False).returncode == 0


class TimelineTools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "t.json").write_text(json.dumps(profile()))
        cls.memsim("import", "-q", cls.folder / "t.json", "-o",
                   cls.folder / "d")
        cls.memsim("replay", "-q", cls.folder / "d", "--chakra",
                   cls.folder / "et", "--kineto", cls.folder / "k.json")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @staticmethod
    def memsim(*words):
        subprocess.run([BUILD / "bin/memsim", *map(str, words)], check=True)

    def script(self, module, text, path, **env):
        if not has(module):
            self.skipTest(f"no {module}: tools/setup timeline")
        done = subprocess.run([PYTHON, "-c", text, path], text=True,
                              capture_output=True, check=False,
                              env={**os.environ, **env})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def test_chakra_reads_the_execution_trace(self):
        trace = self.script("chakra", DECODE, self.folder / "et/chakra.0.et")
        self.assertEqual(trace["version"], "0.0.4")
        nodes = {node["id"]: node for node in trace["nodes"]}
        self.assertEqual(len(nodes), len(trace["nodes"]))
        names = {node["name"]: node for node in trace["nodes"]
                 if not node["attr"]["is_cpu_op"]}
        kinds = {name: node["type"] for name, node in names.items()}
        self.assertEqual(kinds["Memcpy HtoD (Pinned -> Device)"],
                         "COMP_NODE")
        self.assertEqual(kinds["Memcpy DtoH (Device -> Pinned)"],
                         "COMP_NODE")
        self.assertEqual(kinds["gemm"], "COMP_NODE")
        reduce = next(n for name, n in names.items() if "AllReduce" in name)
        self.assertEqual(reduce["type"], "COMM_COLL_NODE")
        self.assertEqual(reduce["attr"]["comm_type"], 0)
        self.assertEqual(reduce["attr"]["comm_size"], 4000)
        self.assertEqual(names["gemm"]["attr"]["duration_ns"], 100000)
        seen = set()
        for node in trace["nodes"]:  # what a node needs comes before it
            self.assertLessEqual(set(node["ctrl"] + node["data"]), seen, node)
            seen.add(node["id"])
        # The all-reduce waits for the GEMM and for its launch.
        self.assertIn(names["gemm"]["id"], reduce["data"])
        self.assertEqual([nodes[i]["name"] for i in reduce["ctrl"]],
                         ["cudaLaunchKernel"])
        # The host waits for what ends last.
        wait = [n for n in trace["nodes"] if n["attr"]["is_cpu_op"]
                and n["data"]]
        self.assertEqual([nodes[n["data"][0]]["type"] for n in wait],
                         ["COMM_COLL_NODE"])

    def test_chakras_programs_take_it(self):
        if not has("chakra"):
            self.skipTest("no chakra: tools/setup timeline")
        for program, end in (("chakra_jsonizer", "json"),
                             ("chakra_visualizer", "graphml")):
            out = self.folder / f"out.{end}"
            subprocess.run([PYTHON.parent / program, "--input_filename",
                            self.folder / "et/chakra.0.et",
                            "--output_filename", out], check=True,
                           capture_output=True)
            self.assertIn("AllReduce", out.read_text())

    def test_hta_reads_the_kineto_export(self):
        told = self.script("hta.trace_analysis", HTA, self.folder / "k.json")
        self.assertLessEqual({"COMMUNICATION", "COMPUTATION", "MEMORY"},
                             set(told["kinds"]))
        self.assertAlmostEqual(told["compute"], 130, delta=2)

    def test_hta_reads_what_the_profiler_of_pytorch_wrote(self):
        if not TORCH.exists():
            self.skipTest(f"no {TORCH}")
        path = self.folder / "torch.json"
        self.memsim("run", "-q", "-o", self.folder / "run", "--", TORCH, "-c",
                    PROFILED, path)
        kernels = [e for e in json.loads(path.read_text())["traceEvents"]
                   if e.get("cat") == "kernel"]
        # operators shorter than 1 us would get negative durations
        told = self.script("hta.trace_analysis", HTA_PROFILED, path,
                           HTA_DISABLE_NS_ROUNDING="1")
        self.assertAlmostEqual(told["compute"], sum(e["dur"] for e in kernels),
                               delta=0.1)
        self.assertGreaterEqual(told["calls"], len(kernels))
        self.assertEqual(told["queues"], 1)

    def test_tracelens_reads_the_kineto_export(self):
        told = self.script("TraceLens", TRACELENS, self.folder / "k.json")
        self.assertAlmostEqual(told["computation_time"], 0.130, delta=1e-4)
        self.assertAlmostEqual(told["total_comm_time"], 0.050, delta=1e-4)
        self.assertAlmostEqual(told["total_memcpy_time"], 0.013, delta=1e-4)


if __name__ == "__main__":
    main()
