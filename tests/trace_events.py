#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a file is what Perfetto takes for a trace, more strictly than it
does: every event has the fields of its kind with numbers where numbers belong,
a thread's slices lie within each other and are all closed, times of a thread
and of a counter never decrease, and whatever has events has a name. Prints what
there is as one line of JSON. Perfetto's own trace_processor is no package."""
import collections
import gzip
import json
import sys

FIELDS = {  # besides ph, pid, tid
    "M": {"name", "args"},
    "B": {"name", "ts", "args"},
    "E": {"ts"},
    "i": {"name", "ts", "s"},
    "C": {"name", "ts", "args"},
    "X": {"name", "ts", "dur", "args"},
    "s": {"name", "ts", "cat", "id"},
    "f": {"name", "ts", "cat", "id", "bp"},
    "b": {"name", "ts", "cat", "id", "args"},
    "e": {"name", "ts", "cat", "id"},
}
OPTIONAL = {"B": {"args"}}
MAX = 2**31 - 1  # of a process's or thread's number


def demand(condition, event, why):
    if not condition:
        raise SystemExit(f"{why}: {json.dumps(event)[:300]}")


def check_fields(event):
    kind = event.get("ph")
    demand(kind in FIELDS, event, "an unknown kind")
    got = set(event) - {"ph", "pid", "tid"}
    demand(FIELDS[kind] - OPTIONAL.get(kind, set()) <= got <= FIELDS[kind],
           event, "odd fields")
    for key in ("pid", "tid"):
        demand(type(event[key]) is int and 0 <= event[key] <= MAX, event, key)
    demand(event["pid"] and event["tid"], event, "Perfetto's idle thread")
    demand("name" not in event or type(event["name"]) is str, event, "name")
    if "ts" in event:
        demand(type(event["ts"]) in (int, float) and event["ts"] >= 0, event,
               "ts")


class Trace:
    def __init__(self):
        self.names = {}  # of processes and threads
        self.used = set()
        self.open = collections.defaultdict(list)
        self.last = {}  # by thread, by counter
        self.slices = collections.Counter()
        self.counters = collections.defaultdict(int)  # their maxima
        self.instants = []
        self.starts = collections.defaultdict(set)  # of whole slices, by thread
        self.ends = {}  # of the last of them
        self.flows = collections.defaultdict(dict)  # by id: ends by kind
        self.dur = collections.Counter()
        self.blocks = {}  # slices that may overlap, by id
        self.ended = set()

    def follows(self, key, event):
        demand(event["ts"] >= self.last.get(key, 0), event, "goes back in time")
        self.last[key] = event["ts"]

    def metadata(self, event):
        what = event["name"], event["pid"]
        if event["name"] == "thread_name":
            what += event["tid"],
        demand(event["name"] in ("process_name", "thread_name"), event, "name")
        demand(what not in self.names, event, "named twice")
        demand(list(event["args"]) == ["name"], event, "args")
        self.names[what] = event["args"]["name"]

    def slice(self, event):
        thread = event["pid"], event["tid"]
        self.follows(thread, event)
        self.used.add(("thread_name", *thread))
        if event["ph"] == "B":
            self.open[thread].append(event["name"])
            path = "/".join(self.open[thread])
            self.slices[self.names.get(("thread_name", *thread)), path] += 1
        else:
            demand(self.open[thread], event, "ends what did not begin")
            self.open[thread].pop()

    def whole(self, event):
        thread = event["pid"], event["tid"]
        self.follows(thread, event)
        self.used.add(("thread_name", *thread))
        demand(type(event["dur"]) in (int, float) and event["dur"] >= 0, event,
               "dur")
        demand(round(event["ts"] * 1000) >= self.ends.get(thread, 0), event,
               "overlaps the one before it")
        self.ends[thread] = round((event["ts"] + event["dur"]) * 1000)
        self.starts[thread].add(event["ts"])
        name = self.names.get(("thread_name", *thread))
        self.slices[name, event["name"]] += 1
        self.dur[name] += event["dur"]

    def overlapping(self, event):
        begun = self.blocks.get(event["id"])
        if event["ph"] == "b":
            demand(begun is None, event, "begins twice")
            demand(event["cat"] == "memory", event, "cat")
            self.blocks[event["id"]] = event
            return
        demand(begun, event, "ends what did not begin")
        demand(event["id"] not in self.ended, event, "ends twice")
        demand(begun["ts"] <= event["ts"] and begun["name"] == event["name"]
               and begun["pid"] == event["pid"], event, "ends another one")
        self.ended.add(event["id"])

    def flow(self, event):
        ends = self.flows[event["id"]]
        demand(event["ph"] == "f" or "s" not in ends, event, "begins twice")
        ends.setdefault(event["ph"], []).append(event)

    def flows_check(self):
        """Each arrow leads from a call to operations that start after it."""
        for ends in self.flows.values():
            demand(sorted(ends) == ["f", "s"], ends, "an arrow without an end")
            for event in ends["s"] + ends["f"]:
                demand(event["ts"] in self.starts[event["pid"], event["tid"]],
                       event, "binds to no slice")
                demand(event["ts"] >= ends["s"][0]["ts"], ends, "backwards")

    def counter(self, event):
        demand(event["args"], event, "counts nothing")
        for name, value in event["args"].items():
            demand(type(value) is int and 0 <= value < 2**53, event, name)
            key = f"{event['pid']} {event['name']} {name}"
            self.counters[key] = max(self.counters[key], value)
        self.follows((event["pid"], event["name"]), event)

    def take(self, event):
        check_fields(event)
        self.used.add(("process_name", event["pid"]))
        kind = event["ph"]
        if kind == "M":
            self.metadata(event)
        elif kind == "C":
            self.counter(event)
        elif kind == "i":
            demand(event["s"] in "gpt", event, "scope")
            self.instants.append(event["name"])
        elif kind == "X":
            self.whole(event)
        elif kind in "be":
            self.overlapping(event)
        elif kind in "sf":
            self.flow(event)
        else:
            self.slice(event)

    def finish(self):
        self.flows_check()
        demand(self.ended == set(self.blocks), "blocks", "a block never ends")
        for thread, names in self.open.items():
            demand(not names, thread, f"never ends: {names}")
        missing = self.used - set(self.names)
        demand(not missing, sorted(missing), "has no name")


def main():
    path = sys.argv[1]
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        whole = json.loads(file.read().decode("utf-8"))
    demand(set(whole) == {"traceEvents", "displayTimeUnit", "otherData"},
           sorted(whole), "odd members")
    demand(whole["displayTimeUnit"] in ("ms", "ns"), whole["displayTimeUnit"],
           "unit")
    trace = Trace()
    for event in whole["traceEvents"]:
        trace.take(event)
    trace.finish()
    print(json.dumps({
        "processes": {pid: name for (what, pid, *_), name
                      in trace.names.items() if what == "process_name"},
        "slices": {f"{thread}: {path}": n for (thread, path), n
                   in trace.slices.items()},
        "flows": len(trace.flows),
        "blocks": [{"name": e["name"], **e["args"]}
                   for e in trace.blocks.values()],
        "busy_us": {thread: round(us, 3) for thread, us in trace.dur.items()},
        "counters": trace.counters, "instants": trace.instants,
        "other": whole["otherData"], "events": len(whole["traceEvents"])}))


if __name__ == "__main__":
    main()
