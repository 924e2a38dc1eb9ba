# SPDX-License-Identifier: Apache-2.0
"""Random programs of allocator calls, for fuzz_alloc.py: lists of
[word, number...]."""
import random

KIB, MIB = 1 << 10, 1 << 20
STREAMS = 4
WIDE = 40  # pools that are made before all programs
USE_ON_OOM, NO_SPLIT = 2, 4

# Sizes at the allocator's edges, and of GPT-2's tensors.
EDGES = [1, 511, 512, 513, 4000, MIB - 512, MIB - 1, MIB, MIB + 1, 2 * MIB,
         10 * MIB - 1, 10 * MIB, 10 * MIB + 1, 19 * MIB, 19 * MIB + 1, 20 * MIB,
         20 * MIB + 1, 21 * MIB, 30 * MIB, 50 * MIB]
REAL = [3072, 9216, 12288, 2359296, 7077888, 9437184, 6291456, 25165824,
        18874368, 3145728, 154389504, 100663296]
CONFS = ["", "", "expandable_segments:True", "max_split_size_mb:21",
         "max_split_size_mb:40", "garbage_collection_threshold:0.3",
         "garbage_collection_threshold:0.7", "roundup_power2_divisions:2",
         "roundup_power2_divisions:[1:2,16:4,>:8]",
         "max_split_size_mb:30,roundup_power2_divisions:4",
         "max_split_size_mb:25,garbage_collection_threshold:0.5",
         "expandable_segments:True,max_split_size_mb:25",
         "expandable_segments:True,garbage_collection_threshold:0.5",
         "expandable_segments:True,roundup_power2_divisions:4"]
# Before 2.11 max_non_split_rounding_mb stays with later programs.
CONFS_2_11 = ["max_split_size_mb:21,max_non_split_rounding_mb:40",
              "large_segment_size_mb:32",
              "large_segment_size_mb:12,max_split_size_mb:40",
              "large_segment_size_mb:64,expandable_segments:True"]


def version_of(text):
    return tuple(int(n) for n in text.split(".")[:2])


def max_split(conf):
    return [part for part in conf.split(",") if "max_split" in part]


class Graph:
    """A CUDA graph. One under capture has streams, the first its own."""

    def __init__(self, pool, stream):
        self.pool, self.streams = pool, [stream]
        self.retained = []  # MemPools that were used in it


class State:
    """What a program has made so far, and so what it may call next."""

    def __init__(self, version):
        self.version = version
        self.made = set()     # (what, number)
        self.begun = []       # MemPools in use, the innermost last
        self.graphs = {}      # by number
        self.fallbacks = set()
        self.pool_users = {}  # of pools that graphs use or handles stand for

    def capturing(self):
        """Numbers of the graphs under capture, the newest last."""
        return [n for n, graph in self.graphs.items() if graph.streams]

    def captured(self):
        """The streams under capture"""
        return [s for graph in self.graphs.values() for s in graph.streams]

    def is_captured(self, op):
        """Is OP's current stream under capture? The newest capture's is the
        current one, but for requests on others."""
        return op[3] in self.captured() if op[0] == "malloc" \
            else bool(self.captured())

    def is_active(self, pool):
        return pool in self.begun or any(
            graph.pool == pool and graph.streams
            for graph in self.graphs.values())

    def can_share(self):
        """Pools that another graph may use. Of those that are a fallback,
        PyTorch begins one when memory runs out, and finds it begun; those that
        a graph gave up are no more for the host's allocator."""
        return [p for p, users in self.pool_users.items()
                if not self.is_active(p) and p not in self.fallbacks
                and users is not None]

    def all(self, what):
        return sorted(number for kind, number in self.made if kind == what)

    def allows(self, op):
        word, number = op[0], op[1] if len(op) > 1 else None
        if word == "malloc" and self.version >= (2, 13) and self.captured():
            # Others make PyTorch query events of streams under capture.
            return op[3] in self.captured()
        if word in ("free", "use"):
            return ("malloc", number) in self.made
        if word == "drop":
            return ("ballast", number) in self.made
        if word == "begin":
            return ("pool", number) in self.made and not self.is_active(number)
        if word == "end":
            return self.begun[-1:] == [number]
        if word == "release":
            return ("pool", number) in self.made and not (
                self.begun or self.captured() or self.pool_users.get(number)
                or any(number in g.retained for g in self.graphs.values()))
        if word == "graph":
            return op[3] not in self.captured() and (
                not op[2] or op[2] in self.can_share())
        if word == "fork":
            return op[2] not in self.captured() and \
                number in self.capturing()
        if word == "ended":
            return number in self.capturing()
        if word == "forget":
            return number in self.graphs and number not in self.capturing()
        if word == "empty":  # an internal error before 2.8
            return self.version >= (2, 8) or not self.captured()
        return True

    def apply(self, op):
        word, number = op[0], op[1] if len(op) > 1 else None
        ends = {"free": "malloc", "drop": "ballast", "release": "pool"}
        if word in ("malloc", "ballast", "pool"):
            self.made.add((word, number))
            if word == "pool" and op[2] & USE_ON_OOM:
                self.fallbacks.add(number)
            elif word == "pool":
                self.pool_users[number] = 0
        elif word in ends:
            self.made.discard((ends[word], number))
            if word == "release":
                self.pool_users.pop(number, None)
        elif word == "begin":
            self.begin(number)
        elif word == "end":
            self.begun.pop()
        elif word == "handle":
            self.pool_users[number] = 0
        elif word == "graph":
            pool = op[2] or number
            self.graphs[number] = Graph(pool, op[3])
            self.pool_users[pool] = self.pool_users.get(pool, 0) + 1
        elif word == "fork":
            self.graphs[number].streams.append(op[2])
        elif word == "ended":
            self.graphs[number].streams = []
        elif word == "forget":
            pool = self.graphs.pop(number).pool
            self.pool_users[pool] = self.pool_users[pool] - 1 or None

    def begin(self, pool):
        """From 2.14 on the graph under capture keeps the pool."""
        self.begun.append(pool)
        if self.version >= (2, 14) and self.captured():
            graph = self.graphs[self.capturing()[-1]]
            if pool not in graph.retained and pool != graph.pool:
                graph.retained.append(pool)

    def closing(self):
        """What ends all that has begun."""
        return [["ended", g] for g in self.capturing()] + \
            [["end", p] for p in reversed(self.begun)]


class Writer:
    """Makes up a program."""

    def __init__(self, seed, version, expandable=True):
        self.expandable = expandable
        self.split = None
        self.random = random.Random(seed)
        self.version = version
        self.state = State(version)
        self.ops = []
        self.live = []
        self.ballast = []
        self.next_id = 0
        self.edges = self.random.random()
        self.deaths = self.random.choice([0.3, 0.5, 0.6])
        self.streams = self.random.choice([1, 1, 2, STREAMS])
        self.captures = self.random.random() < 0.5

    def add(self, *op):
        allowed = self.state.allows(op)
        if allowed:
            self.state.apply(op)
            self.ops.append(list(op))
        return allowed

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def size(self):
        draw = self.random.random()
        if draw < 0.4 * self.edges:
            return self.random.choice(EDGES)
        if draw < 0.6:
            return self.random.choice(REAL)
        top = self.random.choice([8 * KIB, MIB, 4 * MIB, 30 * MIB, 120 * MIB])
        return self.random.randint(1, top)

    def conf(self):
        confs = list(CONFS)
        if self.version >= (2, 11):
            confs += CONFS_2_11
        if not self.expandable:
            confs = [c for c in confs if "expandable" not in c]
        # Lowering max_split_size_mb on the way makes PyTorch free parts of
        # segments; it stays what it is at first.
        conf = self.random.choice([c for c in confs if self.split in (
            None, max_split(c))])
        self.split = max_split(conf)
        if self.version >= (2, 11) and "large_segment" not in conf:
            conf = ",".join(filter(None, [conf, "large_segment_size_mb:20"]))
        return conf if "expandable" in conf else \
            ",".join(filter(None, [conf, "expandable_segments:False"]))

    def stream(self):
        captured = self.state.captured()
        if captured and self.random.random() < 0.7:
            return self.random.choice(captured)
        return self.random.randrange(self.streams)

    def malloc(self):
        number = self.new_id()
        if self.add("malloc", number, self.size(), self.stream()):
            self.live.append(number)

    def free(self):
        if self.live:
            at = self.random.choice([-1, 0, self.random.randrange(
                len(self.live))])
            self.add("free", self.live.pop(at))

    def use(self):
        if self.live:
            self.add("use", self.random.choice(self.live),
                     self.random.randrange(STREAMS))

    def fill(self):
        """Takes memory away, so that requests fail."""
        if self.ballast and self.random.random() < 0.5:
            self.add("drop", self.ballast.pop())
        else:
            self.ballast.append(self.new_id())
            self.add("ballast", self.ballast[-1],
                     self.random.randint(1, 500) * MIB)

    def pool(self):
        draw = self.random.random()
        pools = self.state.all("pool")
        if self.version < (2, 8):
            return  # MemPool was another thing then
        if self.state.begun and draw < 0.7:
            self.add("end", self.state.begun[-1])
        elif pools and draw < 0.8:
            self.add("begin", self.random.choice(pools))
        elif pools and draw < 0.85:
            self.add("release", self.random.choice(pools))
        else:
            flags = self.random.choice([0, USE_ON_OOM])
            if self.version >= (2, 11):
                flags |= self.random.choice([0, 0, NO_SPLIT])
            self.add("pool", self.new_id(), flags)

    def graph(self):
        """CUDA graphs, with pools of their own and shared ones."""
        draw = self.random.random()
        capturing = self.state.capturing()
        if capturing and draw < 0.3:
            self.add("fork", self.random.choice(capturing),
                     self.random.randrange(1, STREAMS))
        elif capturing and draw < 0.6:
            self.add("ended", self.random.choice(capturing))
        elif self.state.graphs and draw < 0.75:
            self.add("forget", self.random.choice(list(self.state.graphs)))
        elif 0.75 < draw < 0.8:
            self.add("handle", self.new_id())
        else:
            pool = self.random.choice([0] + self.state.can_share())
            self.add("graph", self.new_id(), pool,
                     self.random.randrange(1, STREAMS))

    def rare(self):
        if self.captures and self.random.random() < 0.6:
            self.graph()
            return
        self.random.choice([
            lambda: self.add("empty"),
            lambda: self.add("fraction", self.random.choice(
                [0.1, 0.25, 0.5, 0.9, 1.0])),
            lambda: self.add("settings", self.conf()),
            self.fill, self.fill, self.pool, self.pool,
            lambda: self.add("stats")])()

    def program(self):
        self.add("settings", self.conf())
        length = self.random.choice([20, 60, 150])
        rare = self.random.choice([0.05, 0.15, 0.3] if self.captures
                                  else [0.01, 0.05, 0.15])
        for _ in range(length):
            draw = self.random.random()
            if draw < rare:
                self.rare()
            elif draw < rare + 0.06:
                self.use()
            elif draw < self.deaths:
                self.free()
            else:
                self.malloc()
        return self.ops + self.state.closing() + [["stats"]]


def consistent(program, version):
    """PROGRAM without calls on what it does not make any more."""
    state, out = State(version), []
    for op in program:
        if state.allows(op):
            state.apply(op)
            out.append(op)
    return out + state.closing()
