# SPDX-License-Identifier: Apache-2.0
"""Inference of an image model at falling batches, in the order of timm's
benchmark.py: for each batch the model is made again while the one that failed
is still there, float32 weights, autocast to float16, inference mode, cuDNN's
benchmark mode. Takes jobs from stdin, MODEL SIZE OPTIONS BATCH..., runs each
in a child of its own, prints a line of JSON for each batch, and "done". OPTIONS is a
a list of nhwc, fast-norm and plain-attention (as before timm used PyTorch's
own), or none."""
import argparse
import contextlib
import gc
import json
import os
import resource
import sys

import timm
import timm.layers
import torch

STEPS = 2
# Draw weights on the host, or work on what was drawn.
SLOW = ((torch.Tensor, "uniform_"), (torch.Tensor, "normal_"),
        (torch.Tensor, "erfinv_"), (torch.nn.init, "_no_grad_trunc_normal_"),
        (timm.layers.weight_init, "_trunc_normal_"))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=600,
                        help="CPU seconds for a job (default: %(default)s)")
    return parser.parse_args()


class Job:
    def __init__(self, line):
        self.text = line
        self.model, size, options, *batches = line.split()
        self.size = int(size)
        self.options = options.split(",")
        self.batches = [int(batch) for batch in batches]

    def layout(self):
        return torch.channels_last if "nhwc" in self.options else None


@contextlib.contextmanager
def no_random_weights():
    """The weights' values do not matter here, and drawing them on the host
    takes minutes."""
    kept = [(owner, name, getattr(owner, name)) for owner, name in SLOW]
    for owner, name, _ in kept:
        setattr(owner, name, lambda tensor, *words, **named: tensor)
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


class Benchmark:
    def __init__(self, job, batch):
        self.layout = job.layout()
        with no_random_weights():
            self.model = timm.create_model(
                job.model, drop_rate=0.0, drop_path_rate=None)
        self.model.to(device="cuda", dtype=torch.float32,
                      memory_format=self.layout)
        self.model.eval()
        self.shape = batch, 3, job.size, job.size

    def run(self):
        with torch.inference_mode():
            self.images = torch.randn(self.shape, device="cuda")
            if self.layout:
                self.images = self.images.contiguous(
                    memory_format=self.layout)
            for _ in range(STEPS):
                torch.cuda.synchronize()
                with torch.autocast("cuda", torch.float16):
                    self.model(self.images)
                torch.cuda.synchronize()


def show(job, batch, error):
    print(json.dumps({
        "job": job.text, "batch": batch, "fits": not error, "error": error,
        "allocated_bytes": torch.cuda.max_memory_allocated(),
        "reserved_bytes": torch.cuda.max_memory_reserved(),
        "torch": torch.__version__, "timm": timm.__version__}), flush=True)
    torch.cuda.reset_peak_memory_stats()


def search(job):
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    timm.layers.set_fast_norm("fast-norm" in job.options)
    if "plain-attention" in job.options:
        timm.layers.set_fused_attn(False)
    bench = None
    for batch in job.batches:
        torch.cuda.empty_cache()
        try:
            # What failed before is there until the next one is made.
            bench = Benchmark(job, batch)
            bench.run()
            error = ""
        except RuntimeError as failure:
            error = f"{type(failure).__name__}: {failure}"[:600]
        show(job, batch, error)
    del bench


def main():
    args = parse()
    gc.freeze()  # what is imported, which each child's collections would copy
    for line in sys.stdin:
        if not os.fork():
            resource.setrlimit(resource.RLIMIT_CPU, (args.limit, args.limit))
            search(Job(line.strip()))
            sys.exit()
        os.wait()
        print("done", flush=True)


if __name__ == "__main__":
    main()
