# SPDX-License-Identifier: Apache-2.0
"""What a search keeps of a run's JSON: some figures, not its lists."""

# The outcomes of a trial, and how they are called where they are counted.
FITS, TIMEOUT = "fits", "timeout"
OUTCOMES = {FITS: "fit", "grows": "memory grows", "oom": "out of memory",
            "over-limit": "over the limit of memory",
            "input": "out of memory with the longest sample",
            "host-memory": "too much host memory", "failed": "failed",
            TIMEOUT: "over the time limit", "unknown": "unknown", "none": "used no GPU"}
OUT_OF_MEMORY = ("oom", "over-limit")
NO_VERDICT = ("failed", "unknown", "none", TIMEOUT)
PRINTED = 2000


def member_count(members):
    """How many ranks "0,4-7" or "0-120:8" are."""
    count = 0
    for part in str(members or "0").split(","):
        ends, _, stride = part.partition(":")
        first, dash, last = ends.partition("-")
        count += (int(last) - int(first)) // int(stride or 1) + 1 if dash \
            else 1
    return count


def fullest(report):
    """The GPU with the least memory left, by its capacity."""
    devices = [d for rank in report.get("ranks", []) for d in rank["devices"]]
    return min(devices, default=None,
               key=lambda d: d["headroom_bytes"] / d["capacity_bytes"])


def compute_ns(report):
    """Of the step that the step's time is of."""
    time = report["time"]
    for rank in report["ranks"]:
        if rank["rank"] == time["slowest_rank"]:
            for step in rank.get("steps", []):
                if step["index"] == time["step_index"]:
                    return step["compute_ns"]
    return None


def rate(time, what):
    """WHAT per second of the whole job, or None."""
    found = time.get("throughput", {})
    return found.get("job", found).get(f"{what}_per_second")


def measure(report):
    """The figures of a run that a search uses."""
    told = {"outcome": report["verdict"],
            "exit_status": report.get("exit_status"),
            "gpu": report.get("gpu", {}).get("name"),
            "memsim": report.get("version")}
    told["gpus"] = sum(member_count(rank.get("members")) *
                       max(1, len(rank["devices"]))
                       for rank in report.get("ranks", []))
    device = fullest(report)
    if device:
        for name in ("peak_allocated_bytes", "peak_reserved_bytes",
                     "peak_used_bytes", "headroom_bytes", "capacity_bytes"):
            told[name] = device[name]
    if "peak_bytes" in report.get("host", {}):
        told["host_bytes"] = report["host"]["peak_bytes"]
    time = report.get("time")
    if time:
        for name in ("step_ns", "low_ns", "high_ns", "keeps_up_ns",
                     "device_ns", "mfu"):
            if time.get(name) is not None:
                told[name] = time[name]
        told["compute_ns"] = compute_ns(report)
        told["tokens_per_second"] = rate(time, "tokens")
        told["samples_per_second"] = rate(time, "samples")
    return told
