#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Slow: it builds programs for a GPU.
"""tools/conformance-diff and tools/on-a-card/conformance, with memsim's GPU as
the GPU; and what `make conformance` builds."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from suite import TOP, main

DIFF = TOP / "tools/conformance-diff"
CARD = TOP / "tools/on-a-card/conformance"
REAL = TOP / "data/conformance/h200.json"
BUILD = pathlib.Path(os.environ.get("MEMSIM_BUILD", TOP / "build"))
PROGRAMS = BUILD / "tests/capture"
SWEEPS = "sweep", "cudnn_sweep" # ask for sizes, and check none


def run(*words, **how):
    return subprocess.run(list(map(str, words)), text=True,
                          capture_output=True, **how)


def stub(folder, library):
    """A library of NVIDIA's as FOLDER/libNAME.so, as far as a linker sees it:
    what memsim's LIBRARY exports."""
    names = re.findall(r" [TW] ([^@\s]+)", run(
        "nm", "-D", "--defined-only", library).stdout)
    text = "".join(f".globl {x}\n.type {x},@function\n{x}: ret\n"
                   for x in sorted(set(names)))
    done = run("gcc", "-shared", "-nostdlib", f"-Wl,-soname,{library.name}",
               f"-Wl,--version-script={BUILD}/gen/{library.name}.map",
               "-o", folder / re.sub(r"\.so\..*", ".so", library.name), "-x",
               "assembler", "-", input=text)
    assert not done.returncode, done.stderr


def toolkit(folder, lacks=()):
    """A folder as /usr/local/cuda, without the libraries of LACKS."""
    (folder / "lib64/stubs").mkdir(parents=True)
    newest = {}
    for path in sorted((BUILD / "lib/memsim").glob("lib*.so.*"),
                       key=lambda p: int(p.name.split(".")[-1])):
        newest[path.name.split(".")[0]] = path
    for name, path in newest.items():
        if name not in lacks:
            stub(folder / "lib64", path)
    return folder


def conformance(folder, cuda):
    return run("make", "-C", TOP, f"O={BUILD.resolve()}", "-o",
               f"{BUILD.resolve()}/libcore.a", "DEBUG=1", "-j2",
               f"CONFORMANCE_AT={folder}", f"CUDA={cuda}", "conformance")


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
        excluded = json.loads(REAL.read_text())["excluded"]
        named = re.findall(r"^(.*): memsim -?\d+, the GPU another", done.stdout,
                           re.MULTILINE)
        self.assertEqual(set(named), set(excluded) - {
            "code of a graph without its source launched in a capture"})

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

    def test_all_programs_link_with_nvidias_libraries(self):
        """Nothing of memsim's is in them; under memsim they run."""
        built = self.folder / "built"
        done = conformance(built, toolkit(self.folder / "cuda"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            {p.name for p in built.iterdir() if not p.suffix},
            {p.stem for p in (TOP / "tests/capture").glob("*.c")})
        for name in ("driver", "nvml", "graph_node"):
            done = run(BUILD / "bin/memsim", "run", "-q", "--", built / name)
            self.assertIn(" 0 failed, 0 skipped", done.stdout, done.stderr)

    def test_what_a_gpu_is_asked_holds_here(self):
        """The programs leave out what they leave out on a GPU."""
        for path in sorted(PROGRAMS.iterdir()):
            if path.suffix:
                continue
            done = run(BUILD / "bin/memsim", "run", "-q", "--", path,
                       env=dict(os.environ, MEMSIM_AS_REAL="1"))
            self.assertIn(" 0 failed,", done.stdout, path.name + done.stderr)
            self.assertFalse(done.stdout.startswith("0 passed"), path.name)

    def test_they_hold_on_other_gpus(self):
        """Names, sizes and codes are those of the GPU at hand."""
        for gpu in ("h200", "a100-sxm-80gb", "b200", "t4", "p100-pcie-16gb"):
            for path in sorted(PROGRAMS.iterdir()):
                if path.suffix or path.name in SWEEPS:
                    continue
                done = run(BUILD / "bin/memsim", "run", "-q", "--gpu", gpu,
                           "--", path)
                self.assertIn(" 0 failed,", done.stdout,
                              f"{gpu} {path.name}: {done.stderr}")

    def test_programs_whose_library_is_nowhere_are_left_out(self):
        cuda = toolkit(self.folder / "cuda", ("libcudnn", "libnccl"))
        done = run("make", "-n", "-C", TOP, f"CUDA={cuda}",
                   f"CONFORMANCE_AT={self.folder}", "conformance")
        self.assertIn(f"{self.folder}/cublas", done.stdout)
        self.assertIn("no libcudnn.so", done.stdout)
        for name in ("nccl", "cudnn_backend"):
            self.assertNotIn(f"{self.folder}/{name} ", done.stdout)

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
