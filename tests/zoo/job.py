# SPDX-License-Identifier: Apache-2.0
"""Runs configurations of the zoo one after another, each in a fork of this
process, which has imported the library and touched no GPU:

  job.py LIBRARY CONFIGS.json RESULTS [--device cpu] [--timeout S]

A line of JSON per configuration is appended to RESULTS as it ends."""
import argparse
import importlib
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
import warnings

import torch

import training

# They use the GPU when they are imported. A fork of a process that has used it
# cannot use it, so that only the forks import them.
LATE = ["torchao", "bitsandbytes", "xformers"]
# How many times as long as others a configuration may take that compiles.
COMPILING = 6
HERE = os.path.dirname(os.path.abspath(__file__))


def measure(library, config):
    """What the configuration did, as a dictionary."""
    torch.manual_seed(0)
    model, inputs = library.build(config)
    losses, found = training.Trainer(model, inputs, config).run()
    for loss in losses:
        if config["device"] == "cuda" and not math.isfinite(loss):
            raise ValueError(f"the loss is {loss}")
    result = {"shapes": found}
    if config["device"] == "cuda":
        result["allocated_bytes"] = torch.cuda.max_memory_allocated()
        result["reserved_bytes"] = torch.cuda.max_memory_reserved()
    return result


def describe(error):
    """The error in a line, with the place in the library that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = [f for f in frames if "site-packages" in f.filename][-1:]
    where = "".join(f" at {f.filename.split('site-packages/')[-1]}:{f.lineno}"
                    for f in place)
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}{where}"


def child(library, config, out):
    start = time.monotonic()
    for name in LATE:
        del sys.modules[name]
    try:
        result = {"status": "ok", **measure(library, config)}
    except BaseException as error:
        result = {"status": "failed", "error": describe(error)}
        if os.environ.get("ZOO_TRACEBACK"):
            traceback.print_exc()
    result["seconds"] = round(time.monotonic() - start, 1)
    result["host_mib"] = resource.getrusage(
        resource.RUSAGE_SELF).ru_maxrss >> 10
    out.write(json.dumps({"id": config["id"], **result}) + "\n")
    out.flush()


def wait(pid, seconds):
    """The child's status, or None where it was killed for its time."""
    end = time.time() + seconds
    while time.time() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def preload(name):
    """The library and what it would import again in each fork."""
    sys.modules.update(dict.fromkeys(LATE))
    library = importlib.import_module(f"libraries.{name}")
    for other in ("torch._dynamo", *getattr(library, "PRELOAD", ())):
        importlib.import_module(other)
    assert not torch.cuda.is_initialized(), "a library has used the GPU"
    return library


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("configs")
    parser.add_argument("results")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--timeout", type=float, default=300)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, HERE)
    library = preload(args.library)
    with open(args.configs) as file:
        configs = json.load(file)
    for config in configs:
        config["device"] = args.device
        pid = os.fork()
        if pid == 0:
            with open(args.results, "a") as out:
                child(library, config, out)
            os._exit(0)
        status = wait(pid, args.timeout *
                      (COMPILING if training.compiles(config) else 1))
        if status != 0:
            why = "out of time" if status is None else \
                f"ended by signal {os.WTERMSIG(status)}"
            with open(args.results, "a") as out:
                out.write(json.dumps({"id": config["id"], "status": "failed",
                                      "error": why}) + "\n")


if __name__ == "__main__":
    main()
