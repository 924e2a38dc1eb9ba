# SPDX-License-Identifier: Apache-2.0
"""What a job prints at its end, for bench/truth/run."""
import json

import torch


def print_peaks(of="allocated"):
    """Of "active" ones count what was freed but other streams still use."""
    stats = torch.cuda.memory_stats()
    print(json.dumps({
        "torch": torch.__version__,
        "peak_allocated_bytes": stats[f"{of}_bytes.all.peak"],
        "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
    }))
