# SPDX-License-Identifier: Apache-2.0
"""memsim calibrate: measures the operators of this machine's GPU with PyTorch,
as tables that `memsim fit` reads.

Each shape is run alone, several times, under PyTorch's profiler, which has the
times of kernels without their launches. Before each run a buffer larger than the
L2 cache is read, so that the cache has nothing of the operands, and nothing that
must be written back meanwhile. A row is the median of the runs; of operators of
several kernels (sorts, top-k, an embedding's gradient) each kernel has one. Many
shapes share a profile. Shapes come in an order that is random but always the
same, so whatever time there is covers all sizes; a run that was interrupted goes
on where it stopped.
"""
import argparse
import csv
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
import warnings

try:
    import torch
    from torch.profiler import ProfilerActivity, profile
    from calibrate_host import measure_host
    from calibrate_job import Job
    from calibrate_kernels import KERNEL_FAMILIES
    from calibrate_operators import FAMILIES
except ImportError as why:
    sys.exit(f"memsim calibrate: {sys.executable} has no PyTorch that works: "
             f"{why}; --python names one that has")

RUNS = 5
WARM_UP = 2
BATCH = 40  # shapes of a profile
FLUSH_BYTES = 256 << 20
FLUSH_COLUMNS = 8192
CHECK_S = 10  # between two looks at the GPU's clocks
CLOCK = "# clock: sustained\n"  # durations of kernels
# Bits of nvidia-smi's clocks_throttle_reasons.active: slowed by heat or power.
THROTTLED = 0x8 | 0x20 | 0x40 | 0x80


# --- measuring ---------------------------------------------------------------

class Gpu:
    """The GPU's clocks, as far as nvidia-smi tells."""

    def __init__(self):
        self.tool = shutil.which("nvidia-smi")
        self.looked = 0.0
        self.throttled = 0

    def query(self, what):
        done = subprocess.run(
            [self.tool, f"--query-gpu={what}", "--format=csv,noheader,nounits",
             "-i", str(torch.cuda.current_device())],
            capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    def describe(self):
        if not self.tool:
            return "clocks not checked: no nvidia-smi"
        return ("SM clock and its limit "
                + self.query("clocks.sm,clocks.max.sm") + " MHz")

    def wait_cool(self):
        """Waits, where heat or power slow the GPU down; True if they did."""
        if not self.tool or time.time() - self.looked < CHECK_S:
            return False
        self.looked = time.time()
        active = self.query("clocks_throttle_reasons.active")
        if not active.startswith("0x") or not int(active, 16) & THROTTLED:
            return False
        self.throttled += 1
        time.sleep(5)
        return True


def kernels_of(run):
    """(Name, microseconds) of what runs on the GPU in RUN, in order."""
    warnings.filterwarnings("ignore", "Warning: Profiler clears events")
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        run()
        torch.cuda.synchronize()
    events = [event for event in profiled.events()
              if event.device_type == torch.autograd.DeviceType.CUDA]
    events.sort(key=lambda event: event.time_range.start)
    return [(event.name, event.time_range.elapsed_us()) for event in events]


class Flush:
    """What empties the cache before a run: the largest of each row, which is one
    kernel. No operator here has integers of 16 bits, so that its name is its
    own."""

    def __init__(self):
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        rows = max(FLUSH_BYTES, 4 * cache) // (2 * FLUSH_COLUMNS)
        self.buffer = torch.zeros(rows, FLUSH_COLUMNS, dtype=torch.int16,
                                  device="cuda")
        self.count = 0
        self.names = {name for name, _us in kernels_of(self)}

    def __call__(self):
        self.count += 1
        self.buffer.amax(1)

    def split(self, kernels):
        """What follows each call: a list of lists."""
        groups, between = [], True
        for name, us in kernels:
            if name not in self.names:
                between = True
                if groups:
                    groups[-1].append((name, us))
            elif between:
                groups.append([])
                between = False
        return groups


class Runs:
    """Runs shapes in a profile."""

    def __init__(self, flush):
        self.flush = flush
        self.first = []  # of each shape: its first run; None: it cannot run
        self.said = set()

    def refuse(self, table, why):
        if not isinstance(why, torch.cuda.OutOfMemoryError) and \
                table.path not in self.said:
            self.said.add(table.path)
            print(f"memsim calibrate: {table.path}: "
                  f"{str(why).splitlines()[0]}", file=sys.stderr)
        torch.cuda.empty_cache()

    def run(self, table, shape):
        first = self.flush.count
        try:
            call = table.make(shape)
            for _ in range(WARM_UP):
                call()
            first = self.flush.count
            for _ in range(RUNS):
                self.flush()
                call()
            self.flush()  # the next shape's operands are no part of this
        except RuntimeError as why:
            self.refuse(table, why)
            first = None
        self.first.append(first)

    def measure(self, batch, end):
        """For each (table, shape) of BATCH that was begun before END its runs,
        each a list of kernels, or None where it cannot run; or None where the
        profiler has lost some."""
        self.first = []
        before = self.flush.count

        def run():
            for table, shape in batch:
                if time.monotonic() < end or not self.first:
                    self.run(table, shape)

        groups = self.flush.split(kernels_of(run))
        if len(groups) != self.flush.count - before:
            return None
        return [None if first is None else
                groups[first - before:first - before + RUNS]
                for first in self.first]


class Table:
    """A family's rows in a file, which grows."""

    def __init__(self, folder, family, head):
        self.path = os.path.join(folder, f"{family}.csv")
        self.known = set()
        self.draw, self.make, self.share = (FAMILIES | KERNEL_FAMILIES)[
            family][:3]
        self.shape = list(self.draw(random.Random(0)))
        self.columns = self.more_columns()
        if os.path.exists(self.path):
            self.read(head)
        else:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(head + CLOCK + ",".join(self.columns) + "\n")

    def more_columns(self):
        return [*self.shape, "time_us"]

    def read(self, head):
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().splitlines(keepends=True)
        gpu = [line for line in head.splitlines() if line.startswith("# gpu")]
        if not any(line.strip() in gpu for line in lines):
            sys.exit(f"memsim calibrate: {self.path} is of another GPU; use "
                     "another -o")
        if CLOCK not in lines:
            sys.exit(f"memsim calibrate: {self.path} was measured in another "
                     "way; use another -o")
        if lines and not lines[-1].endswith("\n"):  # it was killed there
            with open(self.path, "w", encoding="utf-8") as file:
                file.writelines(lines[:-1])
            lines.pop()
        rows = csv.reader(line for line in lines if not line.startswith("#"))
        count = len(self.shape)
        self.known = {tuple(row[:count]) for row in list(rows)[1:]}

    def key(self, shape):
        return tuple(str(shape[c]) for c in self.shape)

    def rows(self, _shape, runs):
        """The rows of SHAPE, without its own columns."""
        us = statistics.median(sum(us for _name, us in run) for run in runs)
        return [[f"{us:.6g}"]]

    def add(self, shape, rows):
        self.known.add(self.key(shape))
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("".join(",".join([*self.key(shape), *row]) + "\n"
                               for row in rows))


class KernelTable(Table):
    """The same with a row for each kernel of a shape."""

    def __init__(self, folder, family, head):
        self.kernels = KERNEL_FAMILIES[family][3]
        super().__init__(folder, family, head)

    def more_columns(self):
        return [*self.shape, "kernel", "op", "numel", "bytes", "read_bytes",
                "time_us"]

    def rows(self, shape, runs):
        rows = []
        for kernel, row in self.kernels(shape).items():
            name = re.compile(rf"(^|[ :]){kernel}[<(]")
            us = [us for run in runs for n, us in run if name.search(n)]
            if us:
                rows.append([kernel, *(str(row[c]) for c in self.columns[-5:-1]),
                             f"{statistics.median(us):.6g}"])
        return rows


def open_tables(folder, head):
    tables = {name: Table(folder, name, head) for name in FAMILIES}
    tables |= {name: KernelTable(folder, name, head)
               for name in KERNEL_FAMILIES}
    return tables


def shapes_of(o, tables, job):
    """(Table's name, shape): those of JOB, then drawn ones."""
    draw = random.Random(1)
    names = list(tables)
    shares = [table.share for table in tables.values()]
    if job:
        yield from job.shapes()
    for _ in range(o.shapes):
        name = draw.choices(names, shares)[0]
        yield name, tables[name].draw(draw)


def batches_of(shapes, tables):
    """Lists of (table, shape) that are not measured yet."""
    batch, asked = [], set()
    for name, shape in shapes:
        key = name, tables[name].key(shape)
        if key[1] in tables[name].known or key in asked:
            continue
        asked.add(key)
        batch.append((tables[name], shape))
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def measure(runs, batch, end, gpu):
    """The runs of each of BATCH; alone, where the profiler has lost some."""
    found = runs.measure(batch, end)
    if found and gpu.wait_cool():
        found = runs.measure(batch, end)
    if found is None and len(batch) > 1:
        found = [runs.measure([one], end) for one in batch]
        found = [one[0] if one else None for one in found]
    return found or []


def calibrate(o, gpu, head):
    tables = open_tables(o.output, head)
    job = Job(o.memsim, o.job) if o.job else None
    runs = Runs(Flush())
    end = time.monotonic() + o.minutes * 60
    all_ = o.shapes + (len(job.shapes()) if job else 0)
    said = time.monotonic()
    made = skipped = 0
    for batch in batches_of(shapes_of(o, tables, job), tables):
        if time.monotonic() > end:
            break
        for (table, shape), its in zip(batch, measure(runs, batch, end, gpu)):
            rows = table.rows(shape, its) if its else []
            if its:
                table.add(shape, rows)
            made += bool(rows)
            skipped += not rows
        if time.monotonic() - said > 5:
            said = time.monotonic()
            print(f"memsim calibrate: {made} shapes of {all_}",
                  file=sys.stderr, flush=True)
    if job:
        job.coverage(tables, sys.stderr)
    print(f"memsim calibrate: {made} shapes measured, "
          f"{sum(len(t.known) for t in tables.values())} in all, {skipped} "
          f"did not run; slowed by heat or power {gpu.throttled} times; next: "
          f"memsim fit {o.output}/*.csv -o FIT.json", file=sys.stderr)


# --- --truth -----------------------------------------------------------------

def model_transformer():
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
    return (torch.nn.TransformerEncoder(layer, 12),
            lambda: torch.ones(8, 512, 1024, device="cuda"))


def model_convolution():
    layers, width = [torch.nn.Conv2d(3, 64, 7, 2, 3)], 64
    for out in (128, 256, 512):
        layers += [torch.nn.Conv2d(width, out, 3, 2, 1),
                   torch.nn.BatchNorm2d(out), torch.nn.ReLU()]
        width = out
    return (torch.nn.Sequential(*layers),
            lambda: torch.ones(32, 3, 224, 224, device="cuda"))


MODELS = {"transformer": model_transformer, "convolution": model_convolution}


def used_bytes():
    free, total = torch.cuda.mem_get_info()
    return total - free


def truth_model(name):
    torch.cuda.reset_peak_memory_stats()
    model, batch = MODELS[name]()
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x, times = batch(), []
    for _step in range(8):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(x).float().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return {"model": name, "step_ms": statistics.median(times[3:]),
            "peak_allocated": torch.cuda.max_memory_allocated(),
            "peak_reserved": torch.cuda.max_memory_reserved(),
            "used": used_bytes()}


def truth(o):
    torch.zeros(1, device="cuda")
    context = used_bytes() - torch.cuda.memory_reserved()
    a = torch.ones(64, 64, device="cuda")
    reserved, before = torch.cuda.memory_reserved(), used_bytes()
    torch.mm(a, a)
    workspace = torch.cuda.memory_allocated() - 3 * a.nbytes
    cublas = used_bytes() - before - (torch.cuda.memory_reserved() - reserved)
    rows = [{"context": context, "cublas": cublas,
             "cublas_workspace": max(0, workspace)}]
    for name in MODELS:
        rows.append(truth_model(name))
        torch.cuda.empty_cache()
    path = os.path.join(o.output, "truth.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    print(f"memsim calibrate: {path}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(prog="memsim calibrate")
    parser.add_argument("memsim")
    parser.add_argument("--output", required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--shapes", type=int, default=20000)
    parser.add_argument("--truth", action="store_true")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--for", dest="job")
    o = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("memsim calibrate: PyTorch sees no GPU on this machine; run it "
                 "on one that has the GPU")
    os.makedirs(o.output, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    gpu = Gpu()
    name = torch.cuda.get_device_name()
    head = (f"# source: memsim calibrate, torch {torch.__version__}, CUDA "
            f"{torch.version.cuda}, {gpu.describe()}\n# gpu: {name}\n")
    if os.environ.get("MEMSIM"):  # as common/base/simulated.h has it
        head += "# memsim: simulated, not measured\n"
    if o.host:
        torch.zeros(1, device="cuda")  # makes the context that it uses
        measure_host(o.output, head)
    if o.truth:
        truth(o)
    with torch.no_grad():
        calibrate(o, gpu, head)


if __name__ == "__main__":
    main()
