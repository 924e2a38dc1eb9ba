# SPDX-License-Identifier: Apache-2.0
"""Leaves Triton's templates out of what max-autotune chooses from, unless the
program's environment or its own settings say what it may choose.

max-autotune times the library's product and templates of Triton, and takes the
fastest. memsim knows what a product of the library costs, but not what a
template has to do, so that their times say nothing.
"""
import os

_PRICED = {"TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS": "ATEN,CPP",
           "TORCHINDUCTOR_MAX_AUTOTUNE_CONV_BACKENDS": "ATEN"}


def start():
    for name, choices in _PRICED.items():
        os.environ.setdefault(name, choices)
