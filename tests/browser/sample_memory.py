# SPDX-License-Identifier: Apache-2.0
"""A result with the blocks of a run, made up: what was there before, a first
step, eight alike, and the last. An event takes 1 ms."""
import sample
from sample import MIB

STEPS = ("", "0", "1-8", "9")
EVENTS = 40  # of each run
START_NS = 5_000_000_000
NAMES = ["aten::addmm", "aten::gelu_" + sample.NASTY[1],
         "/job/model.py:3 forward\n/job/train.py:10 <module>",
         "model.blocks.0.mlp", "model.head" + sample.NASTY[0],
         "parameter", "activation"]


def block(born, died, size, address, names=(0, 2, 3, 6)):
    return born, died, size, address, names


def blocks():
    """Parameters that live to the end, and each run's activations, the first
    allocated of which is the last freed."""
    yield block(1, -1, 64 * MIB, 1 << 40, (0, 2, 4, 5))
    for run in range(1, 4):
        for i in range(EVENTS // 2):
            begin = run * EVENTS
            yield block(begin + 1 + i, begin + EVENTS - i,
                        (8 + i) * MIB, (1 << 40) + (1 << 30) + i * 32 * MIB,
                        (1, -1, -1, 6) if i % 3 == 2 else (0, 2, 3, 6))


def columns(rows):
    time = [START_NS + event * 1_000_000 for event in range(5 * EVENTS)]
    rows = sorted(rows, key=lambda r: (r[1] < 0, r[1]))
    return {"address": [r[3] for r in rows], "bytes": [r[2] for r in rows],
            "born": [r[0] for r in rows], "died": [r[1] for r in rows],
            "born_ns": [time[r[0]] for r in rows],
            "died_ns": [-1 if r[1] < 0 else time[r[1]] for r in rows],
            "operator": [r[4][0] for r in rows],
            "stack": [r[4][1] for r in rows],
            "module": [r[4][2] for r in rows],
            "category": [r[4][3] for r in rows]}


def points(found):
    for event in range(1, 4 * EVENTS + 1):
        held = {}
        for born, died, size, _, names in found:
            if born <= event and (died < 0 or died > event):
                name = NAMES[names[3]]
                held[name] = held.get(name, 0) + size
        yield {"time_ns": START_NS + event * 1_000_000, "event": event,
               "allocated": sum(held.values()), "reserved": 1 << 30,
               "categories": held}


def runs():
    """The eight steps take 320 ms, of which the first is drawn."""
    for i, step in enumerate(STEPS):
        begin = START_NS + i * EVENTS * 1_000_000
        yield {"begin": i * EVENTS, "end": (i + 1) * EVENTS, "begin_ns": begin,
               "count": 8 if "-" in step else 1,
               "first_end_ns": begin + EVENTS * 1_000_000,
               "end_ns": begin + EVENTS * 1_000_000,
               **({"step": int(step[0])} if step else {})}


def phases():
    for i in range(1, 4):
        begin = START_NS + i * EVENTS * 1_000_000
        half = EVENTS * 500_000
        for phase, start in (("forward", begin), ("backward", begin + half)):
            yield {"step": i - 1, "phase": phase, "start_ns": start,
                   "end_ns": start + half, "peak_bytes": MIB, "end_bytes": MIB,
                   "end_categories": {}}


def blocks_of_a_run():
    made = sample.result(sample.device(0, layers=2))
    device = made["ranks"][0]["devices"][0]
    found = list(blocks())
    device["timeline"] = [{k: v for k, v in p.items() if k != "event"}
                          for p in points(found)]
    device["phases"] = list(phases())
    device["module_phases"] = []
    device["peak"] = {"time_ns": START_NS + 60_000_000, "step": 0,
                      "phase": "forward"}
    device["history"] = {"runs": list(runs()), "points": list(points(found)),
                         "names": NAMES, "blocks": columns(found),
                         "peak_event": EVENTS + 20, "least_bytes": 4096,
                         "left_out": 1234}
    return made
