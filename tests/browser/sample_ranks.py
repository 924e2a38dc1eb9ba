# SPDX-License-Identifier: Apache-2.0
"""A job of several ranks, made up: rank 0, a class that one rank stands for,
and the slowest, which is the last GPU of its node."""
import copy

import sample
import sample_time
from sample import MIB

COMMAND = ["memsim", "run", "--gpu", "h100", "--nnodes", "2",
           "--nproc-per-node", "8", "--", "python", "train it.py",
           "--name=it's", sample.NASTY[1]]


def step(index, length):
    part = length // 10
    return {"index": index, "duration_ns": length, "low_ns": length // 2,
            "high_ns": 2 * length, "warm_up": False, "compute_ns": 4 * part,
            "exposed_comm_ns": 3 * part, "peers_ns": 2 * part,
            "overlapped_comm_ns": part, "exposed_copy_ns": 0,
            "host_bound_ns": 2 * part, "other_ns": part}


def rank(number, members, gpu, length, layers=12, points=40):
    return {"rank": number, "members": members, "program": "python",
            "step_index": 7, "steps": [step(7, length)],
            "devices": [sample.device(gpu, layers, points)]}


def collectives(ranks):
    kind = {"collective": "all_gather", "ranks": 16, "nodes": 2,
            "gpus_per_node": 8, "calls": 25, "bytes": 1 << 30,
            "time_us": 5200.5, "step": {"calls": 5, "bytes": 1 << 28,
                                        "time_us": 1040.1},
            "error_median": 0.31,
            "warnings": [{"text": "from the link levels" + sample.NASTY[0],
                          "calls": 20}]}
    return {"cluster": "dgx-h100", "about": "", "gpus_per_node": 8, "measured": False,
            "ranks": [{"rank": r["rank"], "kinds": [dict(kind)]}
                      for r in ranks]}


def job(*ranks):
    made = sample.result()
    made["ranks"] = list(ranks)
    made["invocation"] = COMMAND
    slowest = max(ranks, key=lambda r: r["steps"][0]["duration_ns"])
    took = slowest["steps"][0]["duration_ns"]
    made["time"] = {
        "step_ns": took, "low_ns": took // 2, "high_ns": 2 * took,
        "keeps_up_ns": took * 3 // 4, "step_index": 7,
        "slowest_rank": slowest["rank"], "step_is": "optimizer steps",
        "mfu": 0.3, "unknown": 0.06,
        "basis": {"fitted": 0.9, "fallback": 0.1},
        "throughput": {"rank": 0, "module": "Net", "calls": 1, "samples": 4,
                       "samples_per_second": 10.0, "tokens": 4096,
                       "tokens_per_second": 10240.0,
                       "job": {"ranks": 16, "samples_per_second": 170.0,
                               "samples_per_second_per_gpu": 10.625,
                               "tokens_per_second": 174080.0,
                               "tokens_per_second_per_gpu": 10880.0}},
        "by_module": [], "by_operator": [], "critical_path": [
            {"what": "host", "ns": took, "operations": 1}]}
    made["collectives"] = collectives(ranks)
    made["guesses"] = [{"where": "train.py:3", "operator": "aten::nonzero",
                        "what": "a mask" + sample.NASTY[0], "times": 2,
                        "module": "", "elements": 9, "chosen": 4}]
    return made


def ranks():
    """The slowest is not the fullest; rank 15's timeline is left out."""
    made = job(rank(0, "0", 0, 200_000_000),
               rank(1, "1-14", 1, 210_000_000),
               rank(15, "15", 7, 250_000_000, layers=3))
    made["ranks"][1]["step_timeline"], _ = sample_time.timeline(20)
    made["ranks"][1]["step_timeline"]["step_index"] = 7
    made["ranks"][1]["utilization"] = {"window_ns": 100000,
                                       "windows": [0.25, 0.75]}
    made["ranks"][2]["left_out"] = {"step_timeline": 1 << 23}
    return made


def classes():
    """64 classes of 16 ranks each, with as much as a page has room for: the
    history of a GPU's blocks, timelines of steps, a thousand runs."""
    whole = rank(0, "0-15", 0, 200_000_000, layers=96, points=2000)
    whole["step_timeline"], _ = sample_time.timeline(12000)
    whole["step_timeline"]["step_index"] = 7
    light = rank(0, "0-15", 0, 200_000_000, layers=48, points=200)
    made = []
    for i in range(64):
        one = copy.deepcopy(whole if i < 4 else light)
        one.update(rank=16 * i, members=f"{16 * i}-{16 * i + 15}")
        one["steps"][0]["duration_ns"] += i * MIB
        one["devices"][0]["index"] = 0
        made.append(one)
    return job(*made)


def tree():
    """A model that has most of the memory, whose layers are a list."""
    made = sample.result(sample.device(0, 3, 40))
    device = made["ranks"][0]["devices"][0]
    names = {"Net": None, "head": "Net", "layers": "Net"}
    for i in range(12):
        names |= {f"layers.{i}": "layers", f"layers.{i}.mlp": f"layers.{i}"}
    device["modules"] = [
        {"name": name, "bytes_at_peak": MIB, "own_peak_bytes": 2 * MIB,
         "calls": 3, **({"parent": parent} if parent else {})}
        for name, parent in names.items()]
    device["modules_at_peak"] = [
        {"name": name, "bytes": 8 * MIB, "categories": {"activation": 8 * MIB}}
        for name in ["", *names] if name != "layers"]
    return made


def advised():
    """Advice of which the first saves most."""
    made = sample.result(sample.device(0, 3, 40))
    basis = "the recorded allocations, replayed"
    made["ranks"][0]["devices"][0]["advice"] = [
        {"text": f"{name} saves {size} MiB", "of": "used", "fits": True,
         "saves_bytes": size * MIB, "peak_used_bytes": 1000 * MIB,
         "command": "memsim replay DIR --what-if x", "basis": basis + more,
         **facts}
        for name, size, more, facts in (
            ("checkpointing of layers", 800, "; its forward runs again",
             {"costs_ns": 14_000_000, "change": {"text": "checkpoint(block, x)"}}),
            ("8-bit optimizer", 200, "; its states have 8 bits",
             {"time_unknown": "it has other kernels"}))]
    return made
