# SPDX-License-Identifier: Apache-2.0
"""How much of the memory behind its arguments a kernel of Triton's can reach,
by its ttir (src/capture/py/reaches.py)."""
import importlib.util
import os
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def load(name):
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(TOP, "src", "capture", "py", f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stores, reaches = load("stores"), load("reaches")
NONE, ANY = (0, 0), reaches.UNLIMITED

HEAD = """module {
  tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32} \
loc("x"(#loc)), %y: !tt.ptr<f32> loc("y"(#loc)), %n: i32 loc("n"(#loc))) \
attributes {noinline = false} {
"""
START = """%c256 = arith.constant 256 : i32
%row = arith.constant dense<100> : tensor<256xi32>
%pid = tt.get_program_id x : i32
%first = arith.muli %pid, %c256 : i32
%range = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
%firsts = tt.splat %first : i32 -> tensor<256xi32>
%at = arith.addi %firsts, %range : tensor<256xi32>
%xs = tt.splat %x : !tt.ptr<f16> -> tensor<256x!tt.ptr<f16>>
%ys = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
"""
XS, YS = "tensor<256x!tt.ptr<f16>>", "tensor<256x!tt.ptr<f32>>"


def reached(text):
    found = stores.followed(HEAD + START + text + "tt.return\n}\n}\n")
    return reaches.reached(*found)


class Reaches(unittest.TestCase):
    def test_elements_of_a_program(self):
        self.assertEqual(reached(f"""
            %p = tt.addptr %xs, %at : {XS}, tensor<256xi32>
            %v = tt.load %p, %m, %o evictionPolicy = evict_last : {XS}
            %q = tt.addptr %ys, %at : {YS}, tensor<256xi32>
            tt.store %q, %v, %m : {YS}
        """), [(512, ANY), (1024, ANY), NONE])

    def test_a_row_that_all_read(self):
        self.assertEqual(reached(f"""
            %in = arith.remsi %at, %row : tensor<256xi32>
            %p = tt.addptr %xs, %in : {XS}, tensor<256xi32>
            %v = tt.load %p : {XS}
        """), [(512, 200), NONE, NONE])

    def test_what_is_read_twice_counts_once(self):
        self.assertEqual(reached(f"""
            %p = tt.addptr %xs, %at : {XS}, tensor<256xi32>
            %v = tt.load %p : {XS}
            %at2 = arith.addi %firsts, %range : tensor<256xi32>
            %p2 = tt.addptr %xs, %at2 : {XS}, tensor<256xi32>
            tt.store %p2, %v : {XS}
            %p3 = tt.addptr %p2, %c256 : {XS}, i32
            %v3 = tt.load %p3 : {XS}
        """), [(1024, ANY), NONE, NONE])

    def loop(self, last):
        return reached(f"""
            %c0 = arith.constant 0 : i32
            %last = arith.constant 1000 : i32
            scf.for %i = %c0 to {last} step %c256 : i32 {{
            %is = tt.splat %i : i32 -> tensor<256xi32>
            %in = arith.addi %is, %range : tensor<256xi32>
            %p = tt.addptr %ys, %in : {YS}, tensor<256xi32>
            %v = tt.load %p : {YS}
            }}
            %v2 = tt.load %y : !tt.ptr<f32>
        """)[1]

    def test_loops(self):
        self.assertEqual(self.loop("%last"), (4 * 1024 + 4, 4 * (999 + 256)))
        self.assertEqual(self.loop("%n"), (ANY, ANY))

    def test_what_a_loop_moves(self):
        self.assertEqual(reached(f"""
            %c0 = arith.constant 0 : i32
            %last = arith.constant 1024 : i32
            %end = scf.for %i = %c0 to %last step %c256 iter_args(%p = %xs) \
-> ({XS}) : i32 {{
            %v = tt.load %p : {XS}
            %next = tt.addptr %p, %c256 : {XS}, i32
            scf.yield %next : {XS}
            }}
        """), [(2048, ANY), NONE, NONE])

    def test_bytes_of_truth(self):
        self.assertEqual(reached("""
            %p = tt.bitcast %x : !tt.ptr<i1> -> !tt.ptr<i8>
            tt.store %p, %v : !tt.ptr<i8>
        """), [(1, 1), NONE, NONE])

    def test_what_cannot_be_followed_has_no_bound(self):
        self.assertEqual(reached("""
            %d = tt.make_tensor_descriptor %x, [%n], [%s] : !tt.ptr<f16>, \
!tt.tensordesc<tensor<256xf16>>
            %v = tt.load %y : !tt.ptr<f32>
        """), [(ANY, ANY), (4, 4), NONE])


if __name__ == "__main__":
    unittest.main()
