# SPDX-License-Identifier: Apache-2.0
"""Attention that no fused kernel can do is named, with PyTorch's reason. Starts
runs of its own with the programs of MEMSIM_BUILD."""
import subprocess
import sys

from harness import MEMSIM, main, test

JOB = """
import sys
import torch
import torch.nn.functional as F

kind, heads, *disabled = sys.argv[1:]
q = torch.randn(2, 8, 64, 64, device="cuda", dtype=getattr(torch, kind))
k = torch.randn(2, int(heads), 64, 64, device="cuda", dtype=q.dtype)
for each in disabled:
    getattr(torch.backends.cuda, f"enable_{each}_sdp")(False)
F.scaled_dot_product_attention(q, k, k, enable_gqa=heads != "8")
"""
NOTE = "attention (SDPA) runs as plain operators"


def notes(*words):
    done = subprocess.run([MEMSIM, "run", "--", sys.executable, "-c", JOB,
                           *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    assert "UserWarning" not in done.stderr, done.stderr
    return " ".join(done.stderr.split())


@test
def what_a_fused_kernel_does_has_no_note():
    assert NOTE not in notes("bfloat16", "8")
    assert NOTE not in notes("float32", "8")


@test
def a_type_that_no_kernel_has():
    said = notes("float64", "8")
    assert NOTE in said and "to all be of dtype" in said, said
    note = said[said.index(NOTE):].split(" note:")[0]
    assert note.endswith("..."), note  # it is long, and ends behind a word


@test
def grouped_queries_in_single_precision():
    assert NOTE in notes("float32", "2")


@test
def kernels_that_the_program_disabled():
    assert NOTE not in notes("bfloat16", "8", "flash", "mem_efficient",
                             "cudnn")


if __name__ == "__main__":
    main()
