# SPDX-License-Identifier: Apache-2.0
"""Inference of image models with mixed precision, as timm's benchmark.py does
it: float32 weights, autocast to float16, inference mode, TF32 products and
cuDNN's benchmark mode allowed, a wait for the device after each batch. Takes
several jobs, MODEL:BATCH:SIZE:LAYOUT:NORM, so that they share a process, and
prints each with how often it calls modules of its own, or why it cannot. The
last four calls are the model's; some models call their parts while they are
made. NORM "fast" is that program's --fast-norm: group and layer norms in
float16, where autocast has them in float32."""
import argparse

import timm
import torch
from timm.layers import set_fast_norm

CALLS = 4


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="+", metavar="JOB",
                        help="MODEL:BATCH:SIZE:LAYOUT:NORM")
    return parser.parse_args()


class Calls:
    """Counts the calls of modules that no other module makes."""

    def __init__(self):
        hooks = torch.nn.modules.module
        self.depth = self.count = 0
        self.handles = [hooks.register_module_forward_pre_hook(self.enter),
                        hooks.register_module_forward_hook(self.leave)]

    def enter(self, module, inputs):
        self.count += self.depth == 0
        self.depth += 1

    def leave(self, module, inputs, output):
        self.depth -= 1

    def stop(self):
        for handle in self.handles:
            handle.remove()
        return self.count


def make(name, size):
    """Some models take the size of their images at construction."""
    with torch.device("cuda"):
        try:
            return timm.create_model(name, img_size=size)
        except TypeError:
            return timm.create_model(name)


def infer(job):
    name, batch, size, layout, norm = job.split(":")
    set_fast_norm(norm == "fast")
    calls = Calls()
    model = make(name, int(size)).eval()
    made = calls.stop()
    images = torch.randn(int(batch), 3, int(size), int(size), device="cuda")
    if layout == "nhwc":
        model = model.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    for _ in range(CALLS):
        torch.cuda.synchronize()
        with torch.autocast("cuda", torch.float16):
            model(images)
    torch.cuda.synchronize()
    return made + CALLS


def main():
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    for job in parse().jobs:
        with torch.inference_mode():
            try:
                print("job", job, infer(job), flush=True)
            except (RuntimeError, TypeError, AssertionError) as error:
                text = str(error).splitlines()[0] if str(error) else "?"
                print("job", job, "fails:", type(error).__name__, text,
                      flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
