# SPDX-License-Identifier: Apache-2.0
"""A launcher that memsim has started as a rank (memsim run -- accelerate launch).

It sets the environment that its script expects, and then calls torchrun's run()
to start the ranks. memsim has started them already: this process becomes the
script, as the rank that it is.
"""
import os
import sys


def run(args):
    from torch.distributed.run import config_from_args
    _, command, words = config_from_args(args)
    os.environ.pop("MEMSIM_LAUNCHER", None)
    sys.stdout.flush()
    os.execvp(command, [command, *map(str, words)])


def start():
    import torch.distributed.run
    torch.distributed.run.run = run
