#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""runtime/net on 100 random networks: the times of flows that start together,
against progressive filling in exact fractions, and against SimGrid's flow model
where its Python package is installed (Debian: python3-simgrid)."""
import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
from ctypes import POINTER, Structure, c_bool, c_double, c_int, c_uint32
from fractions import Fraction

import suite

NETWORKS = 100
BATCH = 10  # networks of one SimGrid process
RAIL = 1    # enum net_pattern


class Link(Structure):
    _fields_ = [("source", c_uint32), ("to", c_uint32), ("gbps", c_double)]


class Graph(Structure):
    _fields_ = [(name, c_uint32) for name in
                ("switches", "adapters", "links", "given_count")] + [
        ("adapter_at", POINTER(c_uint32)),
        ("adapter_gbps", POINTER(c_double)), ("link", POINTER(Link)),
        ("first", POINTER(c_uint32)), ("given", ctypes.c_void_p),
        ("hop_ns", c_uint32), ("hash", c_bool)]


class Plan(Structure):
    _fields_ = [("pattern", c_int), ("nodes", c_uint32),
                ("adapters", c_uint32), ("adapter_gbps", c_double),
                ("link_gbps", c_double), ("oversubscription", c_double),
                ("k", c_uint32), ("nodes_per_leaf", c_uint32),
                ("spines", c_uint32), ("groups", c_uint32),
                ("routers", c_uint32), ("per_router", c_uint32),
                ("global_gbps", c_double), ("size", c_uint32 * 5),
                ("dimensions", c_uint32)]


class Ways(Structure):
    _fields_ = [("to", c_uint32), ("reached", c_uint32),
                ("far", POINTER(ctypes.c_uint16)),
                ("queue", POINTER(c_uint32))]


class Flow(Structure):
    _fields_ = [("source", c_uint32), ("to", c_uint32), ("weight", c_double)]


class Load(Structure):
    _fields_ = [("pattern", c_uint32), ("weight", c_double)]


class Row(Structure):
    _fields_ = [("first", c_uint32), ("count", c_uint32), ("gbps", c_double),
                ("edge", c_bool)]


class Shares(Structure):
    _fields_ = [("rows", POINTER(Row)), ("loads", POINTER(Load)),
                ("row_count", c_uint32), ("pattern_count", c_uint32)]


class User(Structure):
    _fields_ = [("pattern", c_uint32), ("most_gbps", c_double),
                ("gbps", c_double)]


class Scratch(Structure):
    _fields_ = [("left", POINTER(c_double)), ("sum", POINTER(c_double)),
                ("active", POINTER(c_double))]


def library():
    """runtime/net as a library of its own, built once."""
    directory = tempfile.mkdtemp(prefix="memsim-net.")
    path = os.path.join(directory, "net.so")
    sources = sorted((suite.TOP / "src/runtime/net").glob("*.c"))
    try:
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC",
                        "-I", str(suite.TOP / "src"), "-o", path,
                        *map(str, sources), "-lm"], check=True)
        net = ctypes.CDLL(path)
    finally:
        pathlib.Path(path).unlink(missing_ok=True)
        os.rmdir(directory)
    net.net_plan_nodes.restype = ctypes.c_uint64
    net.net_gbps.restype = c_double
    return net


NET = library()


def graph_room(graph, links):
    graph.adapter_at = (c_uint32 * graph.adapters)()
    graph.adapter_gbps = (c_double * graph.adapters)()
    graph.first = (c_uint32 * (graph.switches + 1))()
    graph.link = (Link * max(links, 1))()


def planned(rng):
    """A network of a random pattern."""
    size = [rng.randint(1, 4), rng.randint(1, 3), rng.randint(2, 3)]
    plan = Plan(pattern=rng.randrange(5), adapters=rng.choice([1, 2]),
                adapter_gbps=rng.choice([25, 50]), link_gbps=rng.choice(
                    [10, 25, 50]), oversubscription=rng.choice([1, 2, 3]),
                k=4, nodes_per_leaf=rng.randint(1, 4),
                spines=rng.randint(1, 3), groups=rng.randint(2, 4),
                routers=rng.randint(1, 3), per_router=2,
                global_gbps=rng.choice([10, 40]),
                size=(c_uint32 * 5)(*size), dimensions=3, nodes=8)
    plan.nodes = min(8, NET.net_plan_nodes(ctypes.byref(plan)))
    graph = Graph(hash=True)
    NET.net_plan_size(ctypes.byref(plan), ctypes.byref(graph))
    graph_room(graph, graph.links)
    NET.net_plan_fill(ctypes.byref(plan), ctypes.byref(graph))
    return graph


def meshed(rng):
    """Switches in a random tree, with some more links."""
    switches = rng.randint(2, 8)
    pairs = {(rng.randrange(i), i) for i in range(1, switches)}
    for _ in range(rng.randint(0, switches)):
        one, other = sorted(rng.sample(range(switches), 2))
        pairs.add((one, other))
    graph = Graph(switches=switches, adapters=8, links=2 * len(pairs),
                  hash=True)
    graph_room(graph, graph.links)
    for i, (one, other) in enumerate(sorted(pairs)):
        gbps = rng.choice([5, 10, 25, 50])
        graph.link[2 * i] = Link(one, other, gbps)
        graph.link[2 * i + 1] = Link(other, one, gbps)
    for i in range(graph.adapters):
        graph.adapter_at[i] = rng.randrange(switches)
        graph.adapter_gbps[i] = rng.choice([10, 25, 50])
    return graph


def route(graph, source, to):
    """The resources on the way of one flow."""
    count = graph.links + 2 * graph.adapters
    far = (ctypes.c_uint16 * graph.switches)()
    queue = (c_uint32 * graph.switches)()
    loads, amount = (c_double * count)(), (c_double * graph.switches)()
    at = graph.adapter_at[to]
    reached = NET.net_distances(ctypes.byref(graph), at, far, queue)
    NET.net_route(ctypes.byref(graph),
                  ctypes.byref(Ways(at, reached, far, queue)),
                  ctypes.byref(Flow(source, to, 1)), 1, amount, loads)
    return [i for i in range(count) if loads[i]]


def network(seed):
    """{"gbps": of each resource, "flows": [[resources, 1e9 bytes]...]}"""
    rng = random.Random(seed)
    graph = planned(rng) if seed % 2 else meshed(rng)
    NET.net_sort(ctypes.byref(graph))
    flows = []
    for _ in range(rng.randint(2, 24)):
        one, other = rng.sample(range(graph.adapters), 2)
        flows.append([route(graph, one, other), rng.choice([1, 2, 5, 10])])
    gbps = [NET.net_gbps(ctypes.byref(graph), i)
            for i in range(graph.links + 2 * graph.adapters)]
    return {"gbps": gbps, "flows": flows}


def shares_of(case):
    """Every flow is a pattern."""
    rows, loads = [], []
    for resource, gbps in enumerate(case["gbps"]):
        own = [i for i, flow in enumerate(case["flows"])
               if resource in flow[0]]
        if own:
            rows.append(Row(len(loads), len(own), gbps, False))
            loads += [Load(i, 1) for i in own]
    return Shares((Row * len(rows))(*rows), (Load * len(loads))(*loads),
                  len(rows), len(case["flows"]))


def net_rates(case, active, shares):
    users = (User * len(active))(*[User(i, 1e9, 0) for i in active])
    scratch = Scratch((c_double * shares.row_count)(),
                      (c_double * shares.row_count)(),
                      (c_double * len(case["flows"]))())
    NET.net_share(ctypes.byref(shares), False, users, len(active),
                  ctypes.byref(scratch))
    return [user.gbps for user in users]


def exact_rates(case, active, _):
    """The link with the least share fixes its flows, then the next one."""
    left = [Fraction(gbps) for gbps in case["gbps"]]
    rates, open_ = {}, set(active)
    while open_:
        use = {}
        for i in open_:
            for resource in case["flows"][i][0]:
                use.setdefault(resource, []).append(i)
        least = min(use, key=lambda r: left[r] / len(use[r]))
        rate = left[least] / len(use[least])
        for i in use[least]:
            rates[i] = rate
            open_.remove(i)
            for resource in case["flows"][i][0]:
                left[resource] -= rate
    return [rates[i] for i in active]


def ends_of(case, rates_of):
    """When each flow has ended, all of them having begun at 0."""
    left = {i: Fraction(flow[1]) for i, flow in enumerate(case["flows"])}
    ends, now = [0] * len(left), 0
    shares = shares_of(case)
    while left:
        active = sorted(left)
        rates = rates_of(case, active, shares)
        step = min(left[i] / Fraction(rate)
                   for i, rate in zip(active, rates))
        now += step
        for i, rate in zip(active, rates):
            left[i] -= step * Fraction(rate)
            if left[i] < Fraction(1, 10**9):
                ends[i] = float(now)
                del left[i]
    return ends


SIMGRID = r"""
import json, sys
import simgrid
from simgrid import Actor, Engine, LinkInRoute, Mailbox, NetZone
cases = json.load(sys.stdin)
engine = Engine(["test", "--log=root.thresh:error", "--cfg=network/model:CM02",
                 "--cfg=network/crosstraffic:0",
                 "--cfg=contexts/factory:thread"])
zone = NetZone.create_full_zone("all")
ends = []

def send(box, size, row, at):
    box.put(1, int(size))
    row[at] = Engine.clock

def receive(box):
    box.get()

for c, case in enumerate(cases):
    links = [zone.create_link("l%d.%d" % (c, i), gbps * 1e6).seal()
             for i, gbps in enumerate(case["gbps"])]
    row = [0] * len(case["flows"])
    ends.append(row)
    for f, (route, size) in enumerate(case["flows"]):
        name = "%d.%d" % (c, f)
        source = zone.create_host("s" + name, 1e9).seal()
        to = zone.create_host("t" + name, 1e9).seal()
        zone.add_route(source.netpoint, to.netpoint, None, None,
                       [LinkInRoute(links[i]) for i in route], False)
        box = Mailbox.by_name(name)
        Actor.create("s" + name, source, send, box, size * 1e6, row, f)
        Actor.create("t" + name, to, receive, box)
zone.seal()
engine.run()
json.dump(ends, sys.stdout)
"""


def simgrid_ends(cases):
    ends = []
    for i in range(0, len(cases), BATCH):
        result = subprocess.run([sys.executable, "-c", SIMGRID],
                                input=json.dumps(cases[i:i + BATCH]),
                                capture_output=True, text=True, check=True)
        ends += json.loads(result.stdout)
    return ends


def has_simgrid():
    return subprocess.run([sys.executable, "-c", "import simgrid"],
                          capture_output=True, check=False).returncode == 0


class RandomNetworks(unittest.TestCase):
    def setUp(self):
        self.cases = [network(seed) for seed in range(NETWORKS)]
        self.ends = [ends_of(case, net_rates) for case in self.cases]

    def compare(self, other, within):
        worst = 0
        for own, theirs in zip(self.ends, other):
            for a, b in zip(own, theirs):
                worst = max(worst, abs(a / b - 1))
        print(f"{NETWORKS} networks, "
              f"{sum(len(e) for e in self.ends)} flows: worst {worst:.2g}",
              file=sys.stderr)
        self.assertLess(worst, within)

    def test_are_shared_as_exact_filling_does(self):
        self.compare([ends_of(case, exact_rates) for case in self.cases],
                     1e-6)

    @unittest.skipUnless(has_simgrid(),
                         "Python's simgrid (python3-simgrid) is not installed")
    def test_are_shared_as_simgrid_does(self):
        self.compare(simgrid_ends(self.cases), 0.01)


if __name__ == "__main__":
    suite.main()
