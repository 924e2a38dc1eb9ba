# SPDX-License-Identifier: Apache-2.0
"""What another tool says of a job: estimate.py TOOL JOBS.PY JOB. Prints a line of
JSON: {"bytes": N}, or {"why": TEXT} where the tool does not say.

JOBS.PY has J, its jobs by name; a job makes its model on the device D, and
returns what runs a step."""
import contextlib
import gc
import importlib.util
import io
import json
import sys

import torch

STEPS = 3


class NotFor(Exception):
    """The tool knows nothing of such a job."""


def jobs_load(path):
    spec = importlib.util.spec_from_file_location("jobs", path)
    jobs = importlib.util.module_from_spec(spec)
    sys.argv = [path, "--list"]  # it is a program
    with contextlib.redirect_stdout(io.StringIO()):
        spec.loader.exec_module(jobs)
    return jobs


def alive(kind):
    return [x for x in gc.get_objects() if isinstance(x, kind)]


def models_alive():
    """The modules that are in no other one."""
    modules = alive(torch.nn.Module)
    inner = {id(y) for x in modules for y in x.children()}
    return [x for x in modules if id(x) not in inner and
            next(x.parameters(), None) is not None]


def built_on_meta(jobs, name):
    """The job's models, without memory."""
    jobs.D = "meta"
    step = jobs.J[name][0]()
    models = models_alive()
    if not models:
        raise NotFor("it has no model")
    return models, step


def memtracker(jobs, name):
    """The job runs; MemTracker watches its tensors."""
    from torch.distributed._tools.mem_tracker import MemTracker
    step = jobs.J[name][0]()
    tracker = MemTracker()
    tracker.track_external(*models_alive(), *alive(torch.optim.Optimizer))
    with tracker:
        for _ in range(STEPS):
            step()
            tracker.reset_mod_stats()
    peak = tracker.get_tracker_snapshot("peak")
    return sum(sizes["Total"] for device, sizes in peak.items()
               if device.type == "cuda")


def accelerate(jobs, name):
    """`accelerate estimate-memory' of the job's model, for Adam."""
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes
    total = 0
    models, _step = built_on_meta(jobs, name)
    for model in models:
        half = next(model.parameters()).dtype != torch.float32
        size, _largest = calculate_maximum_sizes(model)
        usage = estimate_training_usage(size * (2 if half else 1),
                                        "bfloat16" if half else "float32")
        total += max(usage.values())
    return total


def deepspeed(jobs, name):
    """DeepSpeed's estimate of ZeRO-2 on one GPU, without offload."""
    from deepspeed.runtime.zero import stage_1_and_2
    models, _step = built_on_meta(jobs, name)
    count = sum(p.numel() for m in models for p in m.parameters())
    _host, gpu = stage_1_and_2.estimate_zero2_model_states_mem_needs(
        count, cpu_offload=False)
    return int(gpu)


class Recorded(Exception):
    pass


def vramcalc(jobs, name):
    """By the configuration of a job of transformers."""
    import transformers
    from vramcalc import estimate

    def hf(_cls, config, batch, length, prec="amp", opt="adamw", ckpt=False,
           **_other):
        raise Recorded(config, batch, length, prec, opt, ckpt)

    jobs.hf = hf
    try:
        jobs.J[name][0]()
    except Recorded as recorded:
        (kind, values), batch, length, prec, opt, ckpt = recorded.args
    else:
        raise NotFor("it is not a causal language model")
    config = getattr(transformers, kind)(**values).to_dict()
    try:
        found = estimate(
            config, mode="train", batch=batch, seq_len=length,
            dtype="bf16" if prec in ("amp", "bf16") else "fp32",
            precision="amp" if prec.startswith("amp") else "pure",
            optimizer="sgd" if opt == "sgd" else "adamw", attn_impl="sdpa",
            grad_checkpoint=ckpt)
    except (KeyError, ValueError) as error:
        raise NotFor(str(error).splitlines()[0]) from error
    return found.total


TOOLS = {"memtracker": memtracker, "accelerate": accelerate,
         "deepspeed": deepspeed, "vramcalc": vramcalc}


def main():
    tool, path, name = sys.argv[1:]
    jobs = jobs_load(path)
    try:
        answer = {"bytes": TOOLS[tool](jobs, name)}
    except NotFor as error:
        answer = {"why": str(error)}
    except Exception as error:  # the tool's own
        answer = {"why": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps(answer), flush=True)


main()
