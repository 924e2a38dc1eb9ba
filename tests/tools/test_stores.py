# SPDX-License-Identifier: Apache-2.0
"""Which arguments a kernel of Triton's stores to, by its ttir
(src/capture/py/stores.py)."""
import importlib.util
import os
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SPEC = importlib.util.spec_from_file_location(
    "stores", os.path.join(TOP, "src", "capture", "py", "stores.py"))
stores = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stores)

HEAD = """#loc = loc("k.py":1:0)
module {
  tt.func public @k(%out: !tt.ptr<f32> {tt.divisibility = 16 : i32} \
loc("out"(#loc)), %x: !tt.ptr<f32> loc("x"(#loc)), %n: i32 loc("n"(#loc)), \
%idx: !tt.ptr<i64> loc("idx"(#loc))) attributes {noinline = false} {
"""
TAIL = """    tt.return loc(#loc12)
  } loc(#loc)
} loc(#loc)
"""


def stored(*lines, head=HEAD):
    return stores.arguments_stored(
        head + "".join(f"    {x} loc(#loc7)\n" for x in lines) + TAIL)


class Stores(unittest.TestCase):
    def test_store(self):
        self.assertEqual(stored(
            "%0 = tt.splat %out : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>",
            "%1 = tt.addptr %0, %n : tensor<256x!tt.ptr<f32>>",
            "%2 = tt.load %x : tensor<256x!tt.ptr<f32>>",
            "tt.store %1, %2 : tensor<256x!tt.ptr<f32>>"), 1)

    def test_nothing(self):
        self.assertEqual(stored("%2 = tt.load %x : !tt.ptr<f32>"), 0)

    def test_what_is_loaded_is_no_address_of_an_argument_s(self):
        self.assertEqual(stored(
            "%0 = tt.load %idx : !tt.ptr<i64>",
            "%1 = tt.addptr %x, %0 : !tt.ptr<f32>, i64",
            "%2 = tt.atomic_rmw fadd, acq_rel, gpu, %1, %cst, %true : f32"),
            2)
        self.assertIsNone(stored(
            "%0 = tt.load %idx : !tt.ptr<i64>",
            "%1 = tt.int_to_ptr %0 : i64 -> !tt.ptr<f32>",
            "tt.store %1, %cst : !tt.ptr<f32>"))

    def test_loop(self):
        self.assertEqual(stored(
            "%4:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %cst, "
            "%p = %x) -> (f32, !tt.ptr<f32>)  : i32 {",
            "%5 = tt.addptr %p, %i : !tt.ptr<f32>, i32",
            "tt.store %p, %a : !tt.ptr<f32>",
            "scf.yield %a, %5 : f32, !tt.ptr<f32>", "}",
            "tt.store %4#1, %cst : !tt.ptr<f32>"), 2)

    def test_condition(self):
        self.assertEqual(stored(
            "%4 = scf.if %c -> (!tt.ptr<f32>) {",
            "scf.yield %x : !tt.ptr<f32>", "} else {",
            "scf.yield %out : !tt.ptr<f32>", "}",
            "tt.store %4, %cst : !tt.ptr<f32>"), 3)

    def test_what_cannot_be_followed(self):
        self.assertIsNone(stored("tt.call @f(%x) : (!tt.ptr<f32>) -> ()"))
        self.assertIsNone(stored("tt.store %new, %cst : !tt.ptr<f32>"))
        self.assertIsNone(stored(head=HEAD.replace("!tt.ptr<i64>",
                                                   "!tt.tensordesc<2x2xf32>")))
        self.assertIsNone(stores.arguments_stored(""))
        self.assertIsNone(stores.arguments_stored("tt.func public @k("))


if __name__ == "__main__":
    unittest.main()
