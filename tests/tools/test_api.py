#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the API tools on a library of our own: tests/tools/test_api.py.

Each test works in a folder with a "real" library, a header and a list, runs
the tools and looks at what they wrote; some build the fake library and call
it. No wheel, toolkit or network is needed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from suite import TOP, main

sys.path.insert(0, str(TOP / "tools"))
import apifile  # noqa: E402, once its folder is known

CC = os.environ.get("CC", "gcc")

REAL_C = """
int fooNew(int a) { return a; }
int fooKept(void) { return 0; }
const char *fooName(int a) { (void)a; return ""; }
void fooReset(void) {}
void *fooFind(void) { return 0; }
int foolish(void) { return 0; }
int other(void) { return 0; }
int fooState[5];
"""
REAL_MAP = "libfoo.so.7 { global: *; };\n"
HEADER = """
#define fooOld fooOld_v2
#define fooConstant fooOtherConstant
/* int fooComment(void); */
extern fooStatus_t FOOAPI fooNew(int a);
fooStatus_t fooKept(void);
const char * FOOAPI fooName(int a);
void fooReset(void);
void *fooFind(void);
fooStatus_t fooOld_v2(void);
static inline int user(void) { return fooReset(), 1; }
"""
LIST = """# A comment of ours.
prefix foo
soname libfoo.so.7 major 13 node libfoo.so.7
returns fooStatus_t
names foo.h
code 42
warn fooKept  # a reason
"""
USER_C = "int fooNew(int); int fooGone(void);" \
         "int use(void) { return fooNew(1) + fooGone(); }\n"
STUB_CALLED_C = """
#include <stdio.h>
#include "capture/stub.h"
int64_t memsim_stub_called(const char *names, enum stub_policy policy,
                           int64_t code, uint64_t *calls)
{
    printf("%s %s\\n", names, names + strlen(names) + 1);
    return code;
}
"""
HAND_C = "int fooReset(void); int fooReset(void) { return 7; }\n"
MAIN_C = """
#include <stdio.h>
int fooNew(int); int fooKept(void); char *fooName(int); int fooReset(void);
void *fooFind(void);
extern int fooState[5];
int main(void)
{
    int failed = fooNew(1), warned = fooKept(), null = !fooFind();

    printf("%d %d %d %d %s\\n", failed, warned, null,
           fooReset() + fooState[4], fooName(3));
}
"""


class Tools(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        for name, text in (("real.c", REAL_C), ("real.map", REAL_MAP),
                           ("foo.h", HEADER), ("foo.api", LIST)):
            self.write(name, text)
        self.shared("libfoo.so.7", "real.c", "-Wl,--version-script=real.map")

    def write(self, name, text):
        (self.dir / name).write_text(text)

    def run_in(self, *command, status=0):
        done = subprocess.run(command, cwd=self.dir, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def tool(self, name, *arguments, status=0):
        return self.run_in(sys.executable, str(TOP / "tools" / name),
                           *arguments, status=status)

    def shared(self, soname, *arguments):
        self.run_in(CC, "-shared", "-fPIC", "-I", str(TOP / "src"), "-o",
                    soname, f"-Wl,-soname,{soname}", *arguments)

    def gen_api(self):
        self.tool("gen-api", "--api", ".", "--headers", ".", "libfoo.so.7")
        return (self.dir / "foo.api").read_text().splitlines()

    def build_fake(self):
        """Builds ours/libfoo.so.7 of the list's stubs and HAND_C."""
        (self.dir / "ours").mkdir()
        self.write("hand.c", HAND_C)
        self.write("called.c", STUB_CALLED_C)
        self.tool("gen-stubs", "foo.api", "-o", "foo.stubs.c")
        self.tool("gen-stubs", "foo.api", "-o", "libfoo.so.7.map")
        self.shared("libfoo.so.7", "foo.stubs.c", "hand.c", "called.c",
                    "-Wl,--version-script=libfoo.so.7.map")
        (self.dir / "libfoo.so.7").rename(self.dir / "ours/libfoo.so.7")


class GenApi(Tools):
    def test_adds_what_the_library_exports(self):
        lines = self.gen_api()
        self.assertIn("fail fooNew", lines)
        self.assertIn("data fooState 20", lines)

    def test_goes_by_the_return_type(self):
        lines = self.gen_api()
        self.assertIn("text fooName", lines)
        self.assertIn("null fooFind", lines)
        self.assertIn("warn fooReset", lines)

    def test_takes_names_from_headers(self):
        lines = self.gen_api()
        self.assertIn("fail fooOld", lines)
        self.assertIn("fail fooOld_v2", lines)
        self.assertNotIn("fooComment", " ".join(lines))
        self.assertNotIn("Constant", " ".join(lines))

    def test_leaves_other_names_alone(self):
        text = " ".join(self.gen_api())
        self.assertNotIn("other", text)
        self.assertNotIn("foolish", text)

    def test_keeps_what_is_there(self):
        lines = self.gen_api()
        self.assertIn("warn fooKept  # a reason", lines)
        self.assertEqual(lines[:6], LIST.splitlines()[:6])
        self.assertEqual(lines, self.gen_api())

    def test_adds_what_a_program_wants(self):
        self.gen_api()
        self.write("user.c", USER_C)
        self.shared("libuser.so", "user.c")
        self.tool("gen-api", "--api", ".", "libuser.so")
        self.assertIn("fail fooGone", (self.dir / "foo.api").read_text())

    def test_notes_a_new_soname(self):
        self.shared("libfoo.so.8", "real.c")
        self.tool("gen-api", "--api", ".", "--cuda", "14", "libfoo.so.8")
        self.assertIn("soname libfoo.so.8 major 14 node -",
                      (self.dir / "foo.api").read_text())

    def test_says_where_a_list_is_wrong(self):
        self.write("foo.api", LIST + "fail fooKept\n")
        said = self.tool("gen-api", "--api", ".", status=1)
        self.assertIn("foo.api:8: fooKept is listed twice", said)


class GenStubs(Tools):
    def test_one_macro_call_per_symbol(self):
        self.gen_api()
        self.tool("gen-stubs", "foo.api", "-o", "foo.stubs.c")
        lines = (self.dir / "foo.stubs.c").read_text().splitlines()
        self.assertEqual(lines[0], "/* Generated by tools/gen-stubs from "
                         "foo.api; do not edit. */")
        self.assertIn("STUB(foo, fooNew, fail, 42)", lines)
        self.assertIn("STUB(foo, fooKept, warn, 0)", lines)
        self.assertIn("STUB_DATA(foo, fooState, 20);", lines)

    def test_a_code_of_its_own(self):
        self.write("foo.api", LIST + "fail fooOdd -1  # why\n")
        self.tool("gen-stubs", "foo.api", "-o", "foo.stubs.c")
        self.assertIn("STUB(foo, fooOdd, fail, -1)",
                      (self.dir / "foo.stubs.c").read_text())

    def test_refuses_an_unknown_output(self):
        said = self.tool("gen-stubs", "foo.api", "-o", "libbar.map", status=1)
        self.assertIn("libbar.map is none of", said)

    def test_the_library_that_comes_of_it(self):
        self.gen_api()
        self.build_fake()
        self.write("main.c", MAIN_C)
        self.run_in(CC, "-o", "main", "main.c", "ours/libfoo.so.7",
                    "-Wl,-rpath,$ORIGIN/ours")
        self.assertEqual(self.run_in("./main").splitlines(), [
            "foo fooNew", "foo fooKept", "foo fooFind", "foo fooName",
            "42 0 1 7 not implemented by memsim"])

    def test_exports_with_the_version_of_the_real_one(self):
        self.gen_api()
        self.build_fake()
        symbols = self.run_in("readelf", "-W", "--dyn-syms",
                              "ours/libfoo.so.7")
        self.assertIn("fooNew@@libfoo.so.7", symbols)
        self.assertNotIn("memsim_stub_called", symbols)


class Lists(unittest.TestCase):
    """The lists in the tree, which people edit."""

    def setUp(self):
        self.apis = apifile.read_all(TOP / "src/capture/api")

    def test_are_as_gen_api_would_write_them(self):
        for api in self.apis:
            self.assertEqual(api.path.read_text(), api.text(),
                             "run tools/gen-api, which sorts it")

    def test_hold_only_names_of_their_library(self):
        for api in self.apis:
            for name in api.symbols:
                self.assertTrue(api.owns(name), name)

    def test_build_no_soname_twice(self):
        names = [soname.name for api in self.apis for soname in api.sonames]
        self.assertEqual(len(names), len(set(names)))


class CudaHeaders(Tools):
    """Two toolkits stand in for the machine's, and pip has no index."""

    HEADERS = ("cuda_runtime_api.h", "crt/host_defines.h", "cublas_v2.h",
               "cublasLt.h", "cudnn.h", "cufft.h", "cufile.h", "cupti.h",
               "curand.h", "cusolverDn.h", "cusparse.h", "cusparseLt.h",
               "nccl.h", "nvJitLink.h", "nvml.h", "nvrtc.h",
               "nvtx3/nvToolsExt.h", "nv/target")

    def toolkit(self, major, headers=HEADERS):
        include = self.dir / f"cuda-{major}/include"
        for name in headers:
            (include / name).parent.mkdir(parents=True, exist_ok=True)
            (include / name).write_text(f"of {major}\n")
        (include / "cuda.h").write_text(f"#define CUDA_VERSION {major}010\n")
        return str(include.parent)

    def lay_out(self, home, status=0):
        command = [sys.executable, str(TOP / "tools/cuda-headers"), "out"]
        environment = {**os.environ, "CUDA_HOME": home,
                       "CUDA_PATH": self.toolkit(12), "PIP_NO_INDEX": "1"}
        done = subprocess.run(command, cwd=self.dir, text=True,
                              env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_takes_each_toolkit_for_its_major(self):
        home = self.toolkit(13)
        for _ in range(2):  # the second time there is nothing to do
            self.lay_out(home)
            for major in (12, 13):
                header = self.dir / f"out/cu{major}/crt/host_defines.h"
                self.assertEqual(header.read_text(), f"of {major}\n")

    def test_says_what_to_install(self):
        said = self.lay_out(self.toolkit(13, ["cublas_v2.h"]), status=1)
        self.assertIn("install a CUDA toolkit that has it", said)


class CoverageApi(Tools):
    def real(self, source):
        """NVIDIA's library, which stays where ours replaces the other."""
        (self.dir / "real").mkdir()
        self.shared("real/libfoo.so.7", source, "-Wl,-soname,libfoo.so.7",
                    "-Wl,--version-script=real.map")

    def cover(self, wanted, status):
        self.gen_api()
        self.build_fake()
        return self.tool("coverage-api", "--built", "ours", "--api", ".",
                         wanted, status=status).splitlines()

    def test_tells_by_hand_from_stubs(self):
        self.real("real.c")
        self.assertEqual(self.cover("real", 0)[-1],
                         "1 by hand, 5 stubbed, 0 missing")

    def test_names_what_is_missing(self):
        self.write("user.c", USER_C)
        self.shared("libuser.so", "user.c")
        lines = self.cover("libuser.so", 1)
        self.assertIn("missing foo fooGone", lines)
        self.assertEqual(lines[-1], "0 by hand, 1 stubbed, 1 missing")

    def test_another_version_is_missing(self):
        self.write("real.map", "libfoo.so.6 { global: *; };\n")
        self.write("few.c", "int fooNew(int a) { return a; }\n")
        self.real("few.c")
        self.assertEqual(self.cover("real", 1)[-1],
                         "0 by hand, 0 stubbed, 1 missing")


if __name__ == "__main__":
    main()
