#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the allocator engine against real PyTorch.

Random programs of allocator calls run twice: in PyTorch over the fake CUDA
libraries, and in the engine (tests/replay/alloc_play.c). Every event, every
address relative to its segment, every statistic and every out-of-memory error
must be the same. A program on which they differ is cut down and printed.

  fuzz_alloc.py [--programs N] [--seconds S] [--seed N] [--python PYTHON]
  fuzz_alloc.py --child          runs programs (JSON on stdin) in PyTorch
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
KIB, MIB = 1 << 10, 1 << 20
BATCH = 200
STREAMS = 4
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


# ---- programs: lists of [word, number...]

def version_of(text):
    return tuple(int(n) for n in text.split(".")[:2])


def max_split(conf):
    return [part for part in conf.split(",") if "max_split" in part]


class Writer:
    """Makes up a program, knowing which blocks and pools it has."""

    def __init__(self, seed, version, expandable=True):
        self.expandable = expandable
        self.split = None
        self.random = random.Random(seed)
        self.version = version
        self.ops = []
        self.live = []
        self.ballast = []
        self.pools = []
        self.begun = self.fallback = None
        self.next_id = 0
        self.edges = self.random.random()
        self.deaths = self.random.choice([0.3, 0.5, 0.6])
        self.streams = self.random.choice([1, 1, 2, STREAMS])

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

    def malloc(self):
        self.ops.append(["malloc", self.next_id, self.size(),
                         self.random.randrange(self.streams)])
        self.live.append(self.next_id)
        self.next_id += 1

    def free(self):
        if self.live:
            at = self.random.choice([-1, 0, self.random.randrange(
                len(self.live))])
            self.ops.append(["free", self.live.pop(at)])

    def use(self):
        if self.live:
            self.ops.append(["use", self.random.choice(self.live),
                             self.random.randrange(STREAMS)])

    def fill(self):
        """Takes memory away, so that requests fail."""
        if self.ballast and self.random.random() < 0.5:
            self.ops.append(["drop", self.ballast.pop()])
        else:
            self.ops.append(["ballast", self.next_id,
                             self.random.randint(1, 500) * MIB])
            self.ballast.append(self.next_id)
            self.next_id += 1

    def pool(self):
        draw = self.random.random()
        if self.version < (2, 8):
            return  # MemPool was another thing then
        if self.begun is not None:
            self.ops.append(["end", self.begun])
            self.begun = None
        elif self.pools and draw < 0.6:
            self.begun = self.random.choice(self.pools)
            self.ops.append(["begin", self.begun])
        elif self.pools and draw < 0.7:
            self.ops.append(["release", self.pools.pop()])
        else:
            flags = 0
            if self.version >= (2, 8):
                flags |= self.random.choice([0, USE_ON_OOM])
            if flags and self.fallback in self.pools:
                flags = 0  # of several, a hash table's order decides
            if self.version >= (2, 11):
                flags |= self.random.choice([0, 0, NO_SPLIT])
            self.next_id += 1
            if flags & USE_ON_OOM:
                self.fallback = self.next_id
            self.ops.append(["pool", self.next_id, flags])
            self.pools.append(self.next_id)

    def rare(self):
        self.random.choice([
            lambda: self.ops.append(["empty"]),
            lambda: self.ops.append(["fraction", self.random.choice(
                [0.1, 0.25, 0.5, 0.9, 1.0])]),
            lambda: self.ops.append(["settings", self.conf()]),
            self.fill, self.fill, self.pool, self.pool,
            lambda: self.ops.append(["stats"])])()

    def program(self):
        self.ops.append(["settings", self.conf()])
        length = self.random.choice([20, 60, 150])
        rare = self.random.choice([0.01, 0.05, 0.15])
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
        if self.begun is not None:
            self.pool()
        return self.ops + [["stats"]]


# ---- PyTorch's side: a child process under `memsim run`

class Torch:
    """Plays programs in PyTorch."""

    def __init__(self):
        import ctypes
        import torch
        self.torch = torch
        self.cuda = ctypes.CDLL(None)
        torch.cuda.init()
        torch.cuda.synchronize()
        streams = {torch.cuda.Stream().cuda_stream: None for _ in range(64)}
        # Numbered as the allocator orders them: by handle.
        handles = sorted(streams)[:STREAMS - 1]
        self.streams = [torch.cuda.default_stream()] + [
            torch.cuda.ExternalStream(h) for h in handles]
        self.numbers = {0: 0}
        self.numbers.update({h: i + 1 for i, h in enumerate(handles)})

    def malloc(self, block, size, stream):
        torch = self.torch
        try:
            with torch.cuda.stream(self.streams[stream]):
                self.blocks[block] = torch.empty(size, dtype=torch.uint8,
                                                 device="cuda")
        except torch.OutOfMemoryError:
            self.failed.append(block)

    def free(self, block):
        self.blocks.pop(block, None)

    def use(self, block, stream):
        if block in self.blocks:
            self.blocks[block].record_stream(self.streams[stream])

    def empty(self):
        self.torch.cuda.empty_cache()

    def fraction(self, value):
        self.torch.cuda.set_per_process_memory_fraction(value)

    def settings(self, conf):
        self.torch.cuda.memory._set_allocator_settings(conf)

    def ballast(self, block, size):
        import ctypes
        pointer = ctypes.c_void_p()
        if self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)):
            self.cuda.cudaGetLastError()
        else:
            self.ballasts[block] = pointer

    def drop(self, block):
        if block in self.ballasts:
            self.cuda.cudaFree(self.ballasts.pop(block))

    def pool(self, number, flags):
        options = {}
        if flags & USE_ON_OOM:
            options["use_on_oom"] = True
        if flags & NO_SPLIT:
            options["no_split"] = True
        self.pools[number] = self.torch.cuda.MemPool(**options)

    def begin(self, number):
        self.inside = self.torch.cuda.use_mem_pool(self.pools[number])
        self.inside.__enter__()

    def end(self, number):
        self.inside.__exit__(None, None, None)
        self.inside = None

    def release(self, number):
        del self.pools[number]

    def stats(self):
        self.counted.append(dict(self.torch.cuda.memory_stats()))

    def reset(self):
        torch = self.torch
        if getattr(self, "inside", None):
            self.end(0)
        self.blocks, self.ballasts, self.pools = {}, self.__dict__.get(
            "ballasts", {}), {}
        for block in list(self.ballasts):
            self.drop(block)
        torch.cuda.synchronize()
        version = version_of(torch.__version__)
        self.settings("expandable_segments:False" + (
            ",large_segment_size_mb:20" if version >= (2, 11) else ""))
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()
        assert torch.cuda.memory_reserved() == 0, "memory is left over"
        self.inside, self.failed, self.counted = None, [], []

    def play(self, program):
        memory = self.torch.cuda.memory
        self.reset()
        free, total = self.torch.cuda.mem_get_info()
        before = {key: value for key, value
                  in self.torch.cuda.memory_stats().items()
                  if value and key.endswith("current")}
        memory._record_memory_history(enabled=None)
        memory._record_memory_history(context=None, max_entries=1000000)
        for word, *arguments in program:
            getattr(self, word)(*arguments)
        trace = memory._snapshot()["device_traces"][0]
        events = [[e["action"], e.get("addr", e.get("device_free")), e["size"],
                   self.numbers.get(e["stream"], -1)] for e in trace
                  if e["action"] != "snapshot"]
        return {"version": self.torch.__version__, "total": total,
                "other": total - free, "before": before,
                "failed": self.failed,
                "events": events, "stats": self.counted}


def child():
    warnings.simplefilter("ignore")
    torch = Torch()
    for line in sys.stdin:
        try:
            result = torch.play(json.loads(line))
        except RuntimeError as error:
            # Some calls in a row are beyond PyTorch itself: it frees a part of
            # a segment when max_split_size_mb is lowered below it, say.
            result = {"died": str(error).split("\n")[0]}
        print(json.dumps(result), flush=True)
        if "died" in result:
            os._exit(1)
    torch.reset()


# ---- the comparison

class Places:
    """Turns addresses into (which segment, offset in it)."""

    def __init__(self, total):
        self.total = total
        self.segments = {}  # start: [number, bytes, expandable, mapped]
        self.count = 0

    def find(self, address):
        for start, segment in self.segments.items():
            if start <= address < start + segment[1]:
                return start, segment
        return None, None

    def add(self, address, size):
        self.segments[address] = [self.count, size, 0]
        self.count += 1

    def see(self, action, address, size):
        start, segment = self.find(address)
        if action == "segment_alloc":
            self.add(address, size)
        elif action == "segment_map":
            if not segment:
                # Its range is 1 1/8 of the card's memory, in whole pages.
                self.add(address, self.total + self.total // 8)
                start, segment = address, self.segments[address]
            segment[2] += size
        start, segment = self.find(address)
        if not segment:
            return ["?", address]
        place = [segment[0], address - start]
        if action == "segment_unmap":
            segment[2] -= size
        if action == "segment_free" or (action == "segment_unmap"
                                        and segment[2] == 0):
            del self.segments[start]
        return place


def placed(events, total):
    """Events without absolute addresses. Frees that complete together do so in
    the order of a hash table: they are sorted."""
    places, out, run = Places(total), [], []
    for action, address, size, stream in events:
        if action == "oom":
            event = [action, address, size, stream]
        else:
            event = [action, *places.see(action, address, size), size, stream]
        if action == "free_completed":
            run.append(event)
            continue
        out += sorted(run) + [event]
        run = []
    return out + sorted(run)


def deferred_blocks(program):
    """Those whose free waits, for a stream that is not their own."""
    stream = {op[1]: op[3] for op in program if op[0] == "malloc"}
    return {op[1] for op in program
            if op[0] == "use" and stream.get(op[1]) != op[2]}


def completions(program, result):
    """Where deferred frees were done: {index in the program: [block]}. That is
    told by the allocation before which they completed."""
    mallocs = [i for i, op in enumerate(program) if op[0] == "malloc"]
    deferred = deferred_blocks(program)
    owner, waiting, done, at = {}, {}, {}, 0
    for action, address, _, _ in result["events"]:
        if action in ("alloc", "oom"):
            if action == "alloc":
                owner[address] = program[mallocs[at]][1]
            at += 1
        elif action == "free_requested":
            waiting[address] = owner.pop(address)
        elif action == "free_completed":
            block = waiting.pop(address)
            if block in deferred and at < len(mallocs):
                done.setdefault(mallocs[at], []).append(block)
    return done


def lines_for(program, result):
    """The program as alloc_play takes it."""
    failed = set(result["failed"])
    done = completions(program, result)
    lines = [f"version {result['version']}", f"total {result['total']}",
             f"other {result['other']}", "fraction 1.0"]
    for i, (word, *arguments) in enumerate(program):
        lines += [f"done {block}" for block in done.get(i, [])]
        if word in ("free", "use") and arguments[0] in failed:
            continue
        if word == "end":
            # use_mem_pool() gives back what entering it took.
            lines += [f"end {arguments[0]}", f"release {arguments[0]}"]
        elif word == "release":
            # ~MemPool() also empties the pool.
            lines += [f"release {arguments[0]}", f"empty {arguments[0]}"]
        else:
            lines.append(" ".join(str(x) for x in [word, *arguments]))
    return lines


def play_engine(player, lines):
    """(events, list of statistics, complaint)"""
    done = subprocess.run([player], input="\n".join(lines) + "\n", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    events, stats, last = [], [], None
    for line in done.stdout.splitlines():
        word, *rest = line.split()
        if word != "stat":
            events.append([word] + [int(x) for x in rest[:3]])
            continue
        if rest[0] == "allocation.all.current":
            last = {}
            stats.append(last)
        last[rest[0]] = int(rest[1])
    return events, stats, done.stderr.strip()


def complete_together(events):
    """Did frees that waited for different streams complete at once?"""
    actions = "".join("c" if e[0] == "free_completed" else "." for e in events)
    return "cc" in actions


def is_in_doubt(key, events):
    """PyTorch visits the streams in the order of a hash table. Which of two
    neighbours is freed first shows in how often the inactive bytes grew and
    shrank, and in nothing else."""
    return "inactive_split" in key and not key.endswith("current") and \
        complete_together(events)


def difference(player, program, result):
    """What the two sides disagree on, or None."""
    events, stats, complaint = play_engine(player, lines_for(program, result))
    ours = placed(events, result["total"])
    theirs = placed(result["events"], result["total"])
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            return f"event {i}: engine {a}, PyTorch {b}"
    if len(ours) != len(theirs):
        return (f"engine tells {len(ours)} events, PyTorch {len(theirs)}: "
                f"{(ours + theirs)[min(len(ours), len(theirs)):][:1]}")
    if complaint:
        return complaint
    for n, (mine, real) in enumerate(zip(stats, result["stats"])):
        for key, value in mine.items():
            if key.endswith(("current", "peak")):
                # Settings that change can leave oversize counts behind.
                value += result["before"].get(
                    key.replace("peak", "current"), 0)
            if key in real and real[key] != value and \
                    not is_in_doubt(key, result["events"]):
                return f"stats {n}: {key}: engine {value}, PyTorch {real[key]}"
    return None


class Runner:
    def __init__(self, build, python, memory):
        self.build, self.python, self.memory = build, python, memory
        self.player = self.compile_player()

    def compile_player(self):
        source = f"{ROOT}/tests/replay/alloc_play.c"
        player = f"{self.build}/tests/alloc_play"
        os.makedirs(os.path.dirname(player), exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-std=gnu11",
                        "-D_GNU_SOURCE", f"-I{ROOT}/src", "-o", player, source,
                        f"{self.build}/libcore.a", "-lcjson", "-lm"],
                       check=True)
        return player

    def run_some(self, programs):
        """Results of PROGRAMS; shorter where PyTorch died of one."""
        command = [f"{self.build}/bin/memsim", "run", "-q", "--memory",
                   self.memory, "--", self.python, os.path.abspath(__file__),
                   "--child"]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              input="".join(json.dumps(p) + "\n"
                                            for p in programs))
        results = [json.loads(line) for line in done.stdout.splitlines()]
        if len(results) < len(programs) and not (
                results and "died" in results[-1]):
            results.append({"crash": done.stderr[-2000:]})
        return results

    def run(self, programs):
        results = []
        while len(results) < len(programs):
            results += self.run_some(programs[len(results):])
        return results

    def differences(self, programs):
        return [r["crash"] if "crash" in r else
                None if "died" in r else difference(self.player, p, r)
                for p, r in zip(programs, self.run(programs))]

    def version(self):
        """(PyTorch's version, whether it can map memory)"""
        plain, mapped = self.run([[["stats"]], [
            ["settings", "expandable_segments:True"], ["malloc", 0, 1, 0]]])
        if "version" not in plain:
            sys.exit(f"PyTorch does not run: {plain}")
        return plain["version"], "version" in mapped

    def minimise(self, program):
        """A program that differs still, of which no part can be left out."""
        step = len(program) // 2
        while step:
            parts = [program[:i] + program[i + step:]
                     for i in range(0, len(program), step)]
            parts = [consistent(p) for p in parts]
            found = self.differences(parts)
            worse = [p for p, d in zip(parts, found) if d]
            if worse:
                program = min(worse, key=len)
                step = min(step, len(program) // 2 or 1)
            else:
                step //= 2
        return program


def consistent(program):
    """PROGRAM without calls on what it does not make any more."""
    makes = {"malloc": "block", "ballast": "ballast", "pool": "pool"}
    wants = {"free": "block", "use": "block", "drop": "ballast",
             "begin": "pool", "release": "pool"}
    made, begun, out = set(), None, []
    for op in program:
        word, *arguments = op
        if word in makes:
            made.add((makes[word], arguments[0]))
        elif word in wants:
            thing = (wants[word], arguments[0])
            if thing not in made or (thing[0] == "pool" and begun is not None):
                continue
            if word in ("free", "drop", "release"):
                made.discard(thing)
            if word == "begin":
                begun = arguments[0]
        elif word == "end":
            if begun != arguments[0]:
                continue
            begun = None
        out.append(op)
    if begun is not None:
        out.append(["end", begun])
    return out


def report(runner, seed, program, what):
    print(f"seed {seed}: {what}\ncutting it down ...", flush=True)
    program = runner.minimise(program)
    result = runner.run([program])[0]
    if "crash" in result:
        print(f"PyTorch crashes: {program}")
        return
    print(difference(runner.player, program, result))
    print("\n".join("  " + line for line in lines_for(program, result)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=0,
                        help="go on for so long, in place of --programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--build", default=os.environ.get(
        "MEMSIM_BUILD", f"{ROOT}/build"))
    parser.add_argument("--python", default=os.environ.get(
        "MEMSIM_VENV", f"{ROOT}/.venv") + "/bin/python")
    args = parser.parse_args()
    runner = Runner(args.build, args.python, args.memory)
    version, expandable = runner.version()
    if not expandable:
        print("expandable segments are left out: PyTorch cannot map memory")
    end, seed, passed, failed = time.monotonic() + args.seconds, args.seed, 0, 0
    while failed < 3 and (time.monotonic() < end if args.seconds
                          else seed < args.seed + args.programs):
        count = BATCH if args.seconds else min(
            BATCH, args.seed + args.programs - seed)
        programs = [Writer(seed + i, version_of(version), expandable).program()
                    for i in range(count)]
        for i, what in enumerate(runner.differences(programs)):
            if what and failed < 3:
                report(runner, seed + i, programs[i], what)
            failed += what is not None
            passed += what is None
        seed += count
    print(f"torch {version}, seeds {args.seed} to {seed - 1}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(child() if "--child" in sys.argv else main())
