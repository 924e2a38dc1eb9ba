# SPDX-License-Identifier: Apache-2.0
"""What calls of the driver take of the host on this machine, with nothing to
wait for: host.json, beside the tables of operators."""
import ctypes
import json
import os
import statistics
import sys
import time

CALLS = 200   # of one kind in a row; the stream's queue holds 1024
ROUNDS = 15   # of which the median counts
FEW = 8       # of calls that take memory
PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
"""


class Driver:
    """libcuda, with an empty kernel, a stream, an event and some memory."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        module, self.kernel, self.stream, self.event, self.memory = (
            ctypes.c_void_p() for _ in range(5))
        self.do("cuModuleLoadData", ctypes.byref(module), PTX)
        self.do("cuModuleGetFunction", ctypes.byref(self.kernel), module,
                b"nothing")
        self.do("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.do("cuEventCreate", ctypes.byref(self.event), 2)
        self.do("cuMemAlloc_v2", ctypes.byref(self.memory),
                ctypes.c_size_t(1 << 20))

    def do(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            sys.exit(f"memsim calibrate: {name} returned {status}")

    def calls(self):
        """(Name, function, arguments), by the names of doc/time.md."""
        cuda, none = self.cuda, ctypes.c_void_p()
        half = ctypes.c_void_p(self.memory.value + (1 << 19))
        return [
            ("kernel launch", cuda.cuLaunchKernel,
             (self.kernel, 1, 1, 1, 32, 1, 1, 0, self.stream, none, none)),
            ("asynchronous copy", cuda.cuMemcpyDtoDAsync_v2,
             (self.memory, half, ctypes.c_size_t(4096), self.stream)),
            ("asynchronous set", cuda.cuMemsetD8Async,
             (self.memory, 0, ctypes.c_size_t(4096), self.stream)),
            ("event record", cuda.cuEventRecord, (self.event, self.stream)),
            ("stream wait", cuda.cuStreamWaitEvent,
             (self.stream, self.event, 0)),
            ("synchronisation that waits for nothing",
             cuda.cuStreamSynchronize, (self.stream,)),
        ]


def loop_us(driver, function, arguments, count=CALLS):
    """Microseconds of a call and of the loop around it."""
    driver.do("cuStreamSynchronize", driver.stream)
    begin = time.perf_counter_ns()
    for _ in range(count):
        function(*arguments)
    return (time.perf_counter_ns() - begin) / 1e3 / count


def median_us(driver, function, arguments):
    """The same, less a call that asks for a number, as often as it takes."""
    cheap = driver.cuda.cuDriverGetVersion, (ctypes.byref(ctypes.c_int()),)
    rounds = [loop_us(driver, function, arguments) - loop_us(driver, *cheap)
              for _ in range(ROUNDS)]
    return max(0.0, statistics.median(rounds))


def memory_us(driver):
    """Microseconds of taking 64 MiB from the driver and of giving it back."""
    takes, gives = [], []
    for _ in range(FEW):
        at = ctypes.c_void_p()
        begin = time.perf_counter_ns()
        driver.do("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(64 << 20))
        taken = time.perf_counter_ns()
        driver.do("cuMemFree_v2", at)
        takes.append((taken - begin) / 1e3)
        gives.append((time.perf_counter_ns() - taken) / 1e3)
    return statistics.median(takes), statistics.median(gives)


def measure_host(folder, head):
    """Writes FOLDER/host.json; HEAD says what was measured."""
    driver = Driver()
    us = {name: median_us(driver, function, arguments)
          for name, function, arguments in driver.calls()}
    us["cudaMalloc"], us["cudaFree"] = memory_us(driver)
    path = os.path.join(folder, "host.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"about": head.splitlines(),
                   "us": {k: round(v, 3) for k, v in us.items()}}, file,
                  indent=1)
        file.write("\n")
    for name, value in us.items():
        print(f"memsim calibrate: {name}: {value:.1f} us", file=sys.stderr)
    print(f"memsim calibrate: {path}", file=sys.stderr)
