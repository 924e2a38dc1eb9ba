#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/cuda-headers: a wheel's headers beside an installed toolkit's."""
import pathlib
import tempfile
import unittest
import zipfile

from suite import main, program


class Headers(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.toolkit = pathlib.Path(scratch.name, "toolkit")
        self.folder = pathlib.Path(scratch.name, "headers")
        self.wheel = pathlib.Path(scratch.name, "a.whl")
        for name in ("nv/target", "nv/detail/macros", "nv/other", "cuda.h"):
            path = self.toolkit / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("the toolkit's")
        self.folder.mkdir()
        self.tool = program("tools/cuda-headers")
        self.tool.link_all(self.toolkit, self.folder)

    def test_a_wheel_never_writes_into_the_toolkit(self):
        with zipfile.ZipFile(self.wheel, "w") as wheel:
            for name in ("nv/target", "nv/detail/macros", "cuda.h"):
                wheel.writestr(f"nvidia/x/include/cccl/{name}", "the wheel's")
            wheel.writestr("nvidia/x/lib/other", "no header")
        self.tool.unpack(self.wheel, self.folder, ())
        for name in ("nv/target", "nv/detail/macros", "cuda.h"):
            self.assertEqual((self.folder / name).read_text(), "the wheel's")
            self.assertEqual((self.toolkit / name).read_text(),
                             "the toolkit's")
        self.assertEqual((self.folder / "nv/other").read_text(),
                         "the toolkit's")


if __name__ == "__main__":
    main()
