# SPDX-License-Identifier: Apache-2.0
"""A job of collect.py's list again: $MEMSIM_COLLECT is where collect.py is, the
argument is the job as its peaks.jsonl has it."""
import json
import os
import subprocess
import sys

import torch


def main():
    done = subprocess.run(
        [sys.executable, os.environ["MEMSIM_COLLECT"], ".", "--job",
         sys.argv[1]], stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    if "oom" in found:
        sys.exit(found["oom"])
    print(json.dumps({
        "torch": torch.__version__,
        "peak_allocated_bytes": found["peak_allocated"],
        "peak_reserved_bytes": found["peak_reserved"],
    }))


if __name__ == "__main__":
    main()
