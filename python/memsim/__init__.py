# SPDX-License-Identifier: Apache-2.0
"""Run a CUDA training job on simulated GPUs.

    import memsim
    result = memsim.run(["python", "train.py"], gpu="l4")
    print(result.verdict, result.peak_used_bytes)
"""
from memsim.api import MemsimError, Result, load, run, version
from memsim.study import diff, replay, report

__all__ = ["MemsimError", "Result", "diff", "load", "replay", "report", "run",
           "version"]
