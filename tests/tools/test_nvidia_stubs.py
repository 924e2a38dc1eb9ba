#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Slow: pip, ten times.
"""tools/nvidia-stubs: pip is content in an environment whose torch, a stand-in
with the real one's requirements, was installed without NVIDIA's packages."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

from suite import TOP, main

TOOL = TOP / "tools/nvidia-stubs"
REQUIRES = """\
Requires-Dist: cuda-toolkit[cublas,cudart]==13.0.2; platform_system == "Linux"
Requires-Dist: cuda-bindings<14,>=13.0.3; platform_system == "Linux"
Requires-Dist: nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"
Requires-Dist: nvidia-nccl-cu12 (==2.21.5) ; platform_system == "Linux"
Requires-Dist: pyyaml; extra == "pyyaml"
"""
BROKEN = """raise ImportError("libcufile.so.0: cannot open shared object file")
"""


def write_wheel(folder, name, version, requires, code=""):
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl",
                         "w") as wheel:
        info = f"{name}-{version}.dist-info"
        wheel.writestr(f"{name}/__init__.py", code)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\n"
                       f"Name: {name}\nVersion: {version}\n{requires}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\n"
                       "Root-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        top = pathlib.Path(cls.folder.name)
        cls.wheels, cls.venv = top / "wheels", top / "venv"
        cls.wheels.mkdir()
        write_wheel(cls.wheels, "torch", "2.11.0", REQUIRES, BROKEN)
        write_wheel(cls.wheels, "torch", "2.12.0", REQUIRES)
        write_wheel(cls.wheels, "timm", "1.0", "Requires-Dist: torch\n")
        write_wheel(cls.wheels, "vision", "0.26", "Requires-Dist: torch==2.11.0\n")
        write_wheel(cls.wheels, "vision", "0.27", "Requires-Dist: torch==2.12.0\n")
        subprocess.run([sys.executable, "-m", "venv", cls.venv], check=True)
        cls.pip("--no-deps", "torch==2.11.0")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def pip(cls, *arguments, check=True):
        return subprocess.run(
            [cls.venv / "bin/python", "-m", "pip", "install", "-q",
             "--disable-pip-version-check", "--no-index", "--find-links",
             cls.wheels, *arguments], check=check, text=True,
            capture_output=True)

    def python(self, code, **more):
        return subprocess.run([self.venv / "bin/python", "-c", code],
                              text=True, capture_output=True,
                              env={**os.environ, **more})

    def test_pip_is_content_and_keeps_torch(self):
        self.assertNotEqual(self.pip("timm", check=False).returncode, 0)
        for _ in range(2):  # a second time changes nothing
            subprocess.run([self.venv / "bin/python", TOOL], check=True,
                           capture_output=True)
        self.pip("timm", "vision")
        shown = self.python("from importlib.metadata import version as v\n"
                            "print(v('torch'), v('vision'), v('timm'), "
                            "v('cuda-bindings'), v('nvidia-nccl-cu12'))")
        self.assertEqual(shown.stdout, "2.11.0 0.26 1.0 13.0.3 2.21.5\n")
        checked = subprocess.run([self.venv / "bin/python", "-m", "pip",
                                  "check"], text=True, capture_output=True)
        self.assertEqual(checked.returncode, 0, checked.stdout)

        # Outside of memsim the failure says what to do; inside it is torch's.
        failed = self.python("import torch", MEMSIM="0")
        self.assertIn("libcufile.so.0: cannot open", failed.stderr)
        self.assertIn("`memsim run -q -- python ...'", failed.stderr)
        failed = self.python("import torch", MEMSIM="1")
        self.assertNotIn("memsim run", failed.stderr)


main()
