# SPDX-License-Identifier: Apache-2.0
"""Forward passes of a model of KernelBench's, as its timing has them: float32,
no gradients. The models are that project's files, read from a checkout:

    KERNELBENCH=/path/to/KernelBench kernelbench_step.py level3/10_ResNet101.py
"""
import argparse
import os
import pathlib
import runpy

import torch

from peaks import print_peaks


def on_card(values):
    return [v.cuda() if isinstance(v, torch.Tensor) else v for v in values]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    checkout = pathlib.Path(os.environ["KERNELBENCH"])
    problem = runpy.run_path(str(checkout / "KernelBench" / args.file))
    with torch.no_grad():
        model = problem["Model"](*problem["get_init_inputs"]()).cuda()
        inputs = on_card(problem["get_inputs"]())
        for _ in range(args.steps):
            model(*inputs)
    torch.cuda.synchronize()
    print_peaks()


if __name__ == "__main__":
    main()
