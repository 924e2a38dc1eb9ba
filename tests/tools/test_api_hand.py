#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lists of src/capture/api say which functions are written by hand."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from suite import TOP, main

LIBRARIES = pathlib.Path(os.environ.get("MEMSIM_BUILD", TOP / "build"),
                         "lib/memsim")


def api_hand(top, *arguments):
    return subprocess.run([top / "tools/api-hand", *arguments, LIBRARIES],
                          capture_output=True, text=True)


class ApiHand(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.top = pathlib.Path(held.name)
        shutil.copytree(TOP / "tools", self.top / "tools")
        shutil.copytree(TOP / "src/capture/api", self.top / "src/capture/api")
        self.list = self.top / "src/capture/api/cudart.api"

    def replace(self, line, by):
        text = self.list.read_text()
        self.assertTrue(f"\n{line}\n" in text, line)
        self.list.write_text(text.replace(f"\n{line}\n", f"\n{by}\n"))

    def test_the_lists_are_right(self):
        done = api_hand(TOP)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_a_function_that_was_written_is_found(self):
        self.replace("hand cudaMalloc", "fail cudaMalloc")
        done = api_hand(self.top)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cudart.api: cudaMalloc is written by hand", done.stdout)
        self.assertEqual(api_hand(self.top, "--write").returncode, 0)
        self.assertIn("\nhand cudaMalloc\n", self.list.read_text())

    def test_a_function_that_is_only_said_to_be_is_found(self):
        self.replace("fail cudaArrayGetInfo", "hand cudaArrayGetInfo")
        done = api_hand(self.top)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cudaArrayGetInfo is not written by hand", done.stdout)


if __name__ == "__main__":
    main()
