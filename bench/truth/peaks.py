# SPDX-License-Identifier: Apache-2.0
"""What a job prints at its end, for bench/truth/run."""
import json

import torch


def print_peaks():
    print(json.dumps({
        "torch": torch.__version__,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }))
