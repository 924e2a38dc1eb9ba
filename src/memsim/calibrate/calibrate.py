# SPDX-License-Identifier: Apache-2.0
"""memsim calibrate: measures the operators of this machine's GPU with PyTorch,
as tables that `memsim fit` reads.

Each shape is run alone: a buffer larger than the L2 cache is overwritten, then
an event, the operator and another event are queued while the GPU is still at
work on the buffer, so the time between the events has no launch in it. The
median of several such runs is a row. Operators of several kernels (sorts, top-k,
an embedding's gradient) run under PyTorch's profiler instead: a row is a kernel,
with the median of its launches. Shapes come in an order that is random but always
the same, so whatever time there is covers all sizes; a run that was interrupted
goes on where it stopped.
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
    from calibrate_job import Job
    from calibrate_kernels import KERNEL_FAMILIES
    from calibrate_operators import FAMILIES
except ImportError as why:
    sys.exit(f"memsim calibrate: {sys.executable} has no PyTorch that works: "
             f"{why}; --python names one that has")

RUNS = 9
WARM_UP = 2
FLUSH_BYTES = 256 << 20  # 80 us and more on any GPU: time to queue what follows
CHECK_S = 10  # between two looks at the GPU's clocks
# What the simulator puts between two operations of a stream (SIM_GAP_NS): it is
# between the event and the operator here, and no part of the operator.
GAP_US = 1.0
PROFILED_RUNS = 3
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


def measure(call, flush):
    """The median time of CALL in microseconds, the gap before it included."""
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)]
              for _ in range(RUNS)]
    for _ in range(WARM_UP):
        call()
    for begin, end in events:
        flush.zero_()
        begin.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(b.elapsed_time(e) for b, e in events) * 1e3


def measure_kernels(call, flush):
    """The times of each kernel of CALL in microseconds, by its name."""
    times = {}
    call()
    torch.cuda.synchronize()
    warnings.filterwarnings("ignore", "Warning: Profiler clears events")
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(PROFILED_RUNS):
            flush.zero_()
            call()
        torch.cuda.synchronize()
    for event in profiled.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times.setdefault(event.name, []).append(
                event.time_range.elapsed_us())
    return times


class Table:
    """A family's rows in a file, which grows."""

    def __init__(self, folder, family, clock, head):
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
                file.write(head + clock + ",".join(self.columns) + "\n")

    def more_columns(self):
        return [*self.shape, "time_us"]

    def read(self, head):
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().splitlines(keepends=True)
        gpu = [line for line in head.splitlines() if line.startswith("# gpu")]
        if not any(line.strip() in gpu for line in lines):
            sys.exit(f"memsim calibrate: {self.path} is of another GPU; use "
                     "another -o")
        if lines and not lines[-1].endswith("\n"):  # it was killed there
            with open(self.path, "w", encoding="utf-8") as file:
                file.writelines(lines[:-1])
            lines.pop()
        rows = csv.reader(line for line in lines if not line.startswith("#"))
        count = len(self.shape)
        self.known = {tuple(row[:count]) for row in list(rows)[1:]}

    def key(self, shape):
        return tuple(str(shape[c]) for c in self.shape)

    def measure(self, shape, flush):
        """The rows of SHAPE, without its own columns."""
        return [[f"{measure(self.make(shape), flush):.6g}"]]

    def add(self, shape, rows):
        self.known.add(self.key(shape))
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("".join(",".join([*self.key(shape), *row]) + "\n"
                               for row in rows))


class KernelTable(Table):
    """The same with a row for each kernel of a shape."""

    def __init__(self, folder, family, clock, head):
        self.kernels = KERNEL_FAMILIES[family][3]
        super().__init__(folder, family, clock, head)

    def more_columns(self):
        return [*self.shape, "kernel", "op", "numel", "bytes", "read_bytes",
                "time_us"]

    def measure(self, shape, flush):
        times = measure_kernels(self.make(shape), flush)
        rows = []
        for kernel, row in self.kernels(shape).items():
            name = re.compile(rf"(^|[ :]){kernel}[<(]")
            us = [t for n, list_ in times.items() if name.search(n)
                  for t in list_]
            if us:
                rows.append([kernel, *(str(row[c]) for c in self.columns[-5:-1]),
                             f"{statistics.median(us):.6g}"])
        return rows


def run_shape(table, shape, flush, gpu):
    try:
        rows = table.measure(shape, flush)
        if gpu.wait_cool():
            rows = table.measure(shape, flush)
    except torch.cuda.OutOfMemoryError:
        return False
    table.add(shape, rows)
    return bool(rows)


def open_tables(folder, head):
    clock = f"# clock: launch launch_us={GAP_US:g}\n"
    tables = {name: Table(folder, name, clock, head) for name in FAMILIES}
    tables |= {name: KernelTable(folder, name, "# clock: sustained\n", head)
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


def calibrate(o, gpu, head):
    tables = open_tables(o.output, head)
    job = Job(o.memsim, o.job) if o.job else None
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(max(FLUSH_BYTES, 4 * cache), dtype=torch.uint8,
                        device="cuda")
    end = time.monotonic() + o.minutes * 60
    said = made = skipped = 0
    for count, (name, shape) in enumerate(shapes_of(o, tables, job)):
        if time.monotonic() > end:
            break
        if tables[name].key(shape) in tables[name].known:
            continue
        if run_shape(tables[name], shape, flush, gpu):
            made += 1
        else:
            skipped += 1
            torch.cuda.empty_cache()
        if time.monotonic() - said > 5:
            said = time.monotonic()
            print(f"memsim calibrate: {made} shapes, {count + 1} of "
                  f"{o.shapes + (len(job.shapes()) if job else 0)}",
                  file=sys.stderr, flush=True)
    if job:
        job.coverage(tables, sys.stderr)
    print(f"memsim calibrate: {made} shapes measured, "
          f"{sum(len(t.known) for t in tables.values())} in all, {skipped} "
          f"did not fit; slowed by heat or power {gpu.throttled} times; next: "
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
    if o.truth:
        truth(o)
    with torch.no_grad():
        calibrate(o, gpu, head)


if __name__ == "__main__":
    main()
