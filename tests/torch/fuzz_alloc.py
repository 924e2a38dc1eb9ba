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
import subprocess
import sys
import time

from alloc_programs import (USE_ON_OOM, WIDE, State, Writer, consistent,
                            version_of)
from alloc_torch import child

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BATCH = 200
DIED = "PyTorch itself gave up"
HELD = 1 << 30  # numbers of blocks that are no program's


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


def with_seeds(program, version):
    """PROGRAM with what 2.12 and 2.13 take for each graph's random numbers."""
    out = []
    for op in program:
        out.append(op)
        if not (2, 12) <= version <= (2, 13):
            continue
        if op[0] == "graph":
            out += [["malloc", HELD + 2 * op[1] + i, 8, 0] for i in (2, 3)]
        elif op[0] == "forget":
            out += [["free", HELD + 2 * op[1] + i] for i in (3, 2)]
    return out


def pool_number(result, pool):
    """PyTorch's own, whose order counts, as alloc_play takes it."""
    first, second = result["pools"][str(pool)]
    return first << 32 | second


def engine_lines(op, state, number):
    """OP as alloc_play takes it; NUMBER gives a pool's."""
    word, *arguments = op
    if word in ("pool", "begin"):
        return [" ".join(map(str, [word, number(arguments[0]),
                                   *arguments[1:]]))]
    if word == "end":
        # use_mem_pool() gives back what entering it took.
        pool = number(arguments[0])
        return [f"end {pool}", f"release {pool}"]
    if word == "release":
        # ~MemPool() also empties the pool.
        pool = number(arguments[0])
        return [f"release {pool}", f"empty {pool}"]
    if word == "graph":
        return [f"begin {number(arguments[1] or arguments[0])} {arguments[2]}"]
    if word in ("fork", "ended", "forget"):
        graph = state.graphs[arguments[0]]
        pool = number(graph.pool)
        return {"fork": [f"fork {pool} {arguments[-1]}"],
                "ended": [f"end {pool}"],
                "forget": [f"release {number(p)}" for p in
                           [graph.pool, *graph.retained]]}[word]
    return [" ".join(map(str, op))] if word != "handle" else []


def widening(version):
    """What alloc_torch.Torch.widen does."""
    graphs = range(HELD, HELD + WIDE)
    pools = range(HELD + WIDE, HELD + 2 * WIDE) if version >= (2, 8) else []
    return [f"begin {n} 0\nend {n}" for n in graphs] + \
        [f"release {n}" for n in graphs] + \
        [f"pool {n} {USE_ON_OOM}" for n in pools] + \
        [f"release {n}" for n in pools] + ["empty"]


def lines_for(program, result):
    """The program as alloc_play takes it."""
    failed = set(result["failed"])
    version = version_of(result["version"])
    program = with_seeds(program, version)
    done = completions(program, result)
    state = State(version)
    lines = [f"version {result['version']}", f"total {result['total']}",
             f"other {result['other']}", "fraction 1.0"]
    lines += [f"malloc {HELD + i} {size} {stream}"
              for i, (action, _, size, stream) in enumerate(result["held"])
              if action == "alloc"]
    lines += widening(version) + ["reset", "stats"]
    for i, op in enumerate(program):
        lines += [f"done {block}" for block in done.get(i, [])]
        retained = [len(g.retained) for g in state.graphs.values()]
        calls = engine_lines(op, state, lambda p: pool_number(result, p))
        state.apply(op)
        if op[0] in ("free", "use") and op[1] in failed:
            continue
        if op[0] == "begin" and retained != [
                len(g.retained) for g in state.graphs.values()]:
            calls.append(f"pool {pool_number(result, op[1])} 0")
        if state.is_captured(op):
            calls = ["capture", *calls, "captured"]
        lines += calls
    return lines


def play_engine(player, lines):
    """(events, list of statistics, complaint), the first statistics those
    before the program."""
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
    events, (base, *stats), complaint = play_engine(
        player, lines_for(program, result))
    ours = placed(events, result["total"])
    theirs = placed(result["held"] + result["events"], result["total"])
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
                current = key.replace("peak", "current")
                value += result["before"].get(current, 0) - base[current]
            if key in real and real[key] != value and \
                    not is_in_doubt(key, result["events"]):
                return f"stats {n}: {key}: engine {value}, PyTorch {real[key]}"
    return None


class Runner:
    def __init__(self, build, python, memory):
        self.build, self.python, self.memory = build, python, memory
        self.player = self.compile_player()
        self.torch, self.expandable = self.version()

    def compile_player(self):
        source = f"{ROOT}/tests/replay/alloc_play.c"
        player = f"{self.build}/tests/alloc_play"
        made = f"{player}-{os.getpid()}"  # others make it at the same time
        os.makedirs(os.path.dirname(player), exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-std=gnu11",
                        "-D_GNU_SOURCE", f"-I{ROOT}/src", "-o", made, source,
                        f"{self.build}/libcore.a", "-lcjson", "-lm"],
                       check=True)
        os.replace(made, player)
        return player

    def run_some(self, programs):
        """Results of PROGRAMS; shorter where PyTorch died of one."""
        # A Hopper's first segments lie in holes, which the player has not.
        command = [f"{self.build}/bin/memsim", "run", "-q", "--gpu",
                   "a100-sxm-80gb", "--memory", self.memory, "--", self.python,
                   os.path.abspath(__file__), "--child"]
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
        """What each of PROGRAMS differs in, None, or DIED."""
        return [r["crash"] if "crash" in r else
                DIED if "died" in r else difference(self.player, p, r)
                for p, r in zip(programs, self.run(programs))]

    def checked(self, programs):
        """The same, a difference only where it is one in a process of its own:
        an expandable segment that a program leaves behind keeps its pages'
        size for the next."""
        return [what if what in (None, DIED) else self.differences([program])[0]
                for program, what in zip(programs, self.differences(programs))]

    def version(self):
        """(PyTorch's version, whether it can map memory)"""
        plain, mapped = self.run([[["stats"]], [
            ["settings", "expandable_segments:True"], ["malloc", 0, 1, 0]]])
        if "version" not in plain:
            sys.exit(f"PyTorch does not run: {plain}")
        return version_of(plain["version"]), "version" in mapped

    def minimise(self, program):
        """A program that differs still, of which no part can be left out."""
        step = len(program) // 2
        while step:
            parts = [program[:i] + program[i + step:]
                     for i in range(0, len(program), step)]
            parts = [consistent(p, self.torch) for p in parts]
            found = self.differences(parts)
            worse = [p for p, d in zip(parts, found) if d not in (None, DIED)]
            if worse:
                program = min(worse, key=len)
                step = min(step, len(program) // 2 or 1)
            else:
                step //= 2
        return program


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
    if not runner.expandable:
        print("expandable segments are left out: PyTorch cannot map memory")
    end, seed = time.monotonic() + args.seconds, args.seed
    passed = failed = died = 0
    while failed < 3 and (time.monotonic() < end if args.seconds
                          else seed < args.seed + args.programs):
        count = BATCH if args.seconds else min(
            BATCH, args.seed + args.programs - seed)
        programs = [Writer(seed + i, runner.torch, runner.expandable).program()
                    for i in range(count)]
        for i, what in enumerate(runner.checked(programs)):
            if what not in (None, DIED) and failed < 3:
                report(runner, seed + i, programs[i], what)
            failed += what not in (None, DIED)
            died += what == DIED
            passed += what is None
        seed += count
    print(f"torch {'.'.join(map(str, runner.torch))}, seeds {args.seed} to "
          f"{seed - 1}; PyTorch itself gave up on {died}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(child() if "--child" in sys.argv else main())
