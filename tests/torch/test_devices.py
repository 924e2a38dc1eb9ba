# SPDX-License-Identifier: Apache-2.0
"""Several cards in one process, several processes on one card, and allocators
that are not PyTorch's. Starts its own runs, so it is not itself to be started
under one: MEMSIM_BUILD says with what."""
import json
import os
import subprocess
import sys
import tempfile

from harness import equal, main, test

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("MEMSIM_BUILD", os.path.join(ROOT, "build"))
MIB, GIB = 2**20, 2**30

HEAD = """
import json, os, subprocess, sys, torch
MIB, GIB = 2**20, 2**30
def used(i):
    free, total = torch.cuda.mem_get_info(i)
    return total - free
"""


def run(code, gpus=1, arguments=()):
    """What the last line of CODE's output says, as JSON, and the run's."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "memsim"), "run", "-q", "--json", path,
             "--gpus", str(gpus), "--", sys.executable, "-c", HEAD + code,
             *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        equal((done.returncode, done.stdout), (0, done.stdout))
        with open(path) as file:
            return json.loads(done.stdout.splitlines()[-1]), json.load(file)


@test
def two_cards_in_one_process():
    said, result = run("""
a = torch.ones(300 * MIB, dtype=torch.uint8, device="cuda:0")
one = [used(0), used(1)]
b = torch.arange(1000, device="cuda:1")
c = b.to("cuda:0")
d = c[1:3].to("cuda:1") + 1
torch.cuda.set_device(1)
e = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
print(json.dumps([torch.cuda.device_count(), one[0] // MIB, one[1],
                  c[-1].item(), d.tolist(), str(e.device),
                  torch.cuda.can_device_access_peer(0, 1),
                  [torch.cuda.memory_allocated(i) for i in range(2)]]))
""", gpus=2)
    context = said[1] - 300
    assert 400 < context < 700, said
    # The second card's context is its own, and there only once it is used:
    # mem_get_info(1) makes it, as on a real card.
    assert 400 * MIB < said[2] < 700 * MIB, said
    equal(said[3:7], [999, [2, 3], "cuda:1", True])
    peaks = [d["peak_allocated_bytes"] for d in result["ranks"][0]["devices"]]
    equal(peaks, [300 * MIB + 8192, 100 * MIB + 8192 + 512])
    equal(said[7], peaks)


@test
def a_wrong_device_is_pytorch_s_error():
    said, _ = run("""
texts = []
for wrong in (lambda: torch.zeros(2, device="cuda:0") +
                      torch.zeros(2, device="cuda:1"),
              lambda: torch.zeros(2, device="cuda:2")):
    try:
        wrong()
        texts.append("")
    except RuntimeError as error:
        texts.append(str(error).splitlines()[0])
print(json.dumps(texts))
""", gpus=2)
    assert said[0].startswith("Expected all tensors to be on the same device")
    equal(said[1], "CUDA error: invalid device ordinal")


DRIVER = 9240576  # of a context; NVML does not count it as the process's

SHARE = """
if len(sys.argv) > 1:
    a = torch.empty(50 * GIB, dtype=torch.uint8, device="cuda")
    print("ready", flush=True)
    sys.stdin.read()
    sys.exit()
child = subprocess.Popen([sys.executable, *sys.orig_argv[1:], "child"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
context = used(0) - 50 * GIB
a = torch.empty(10 * GIB, dtype=torch.uint8, device="cuda")
total = used(0)
try:
    torch.empty(25 * GIB, dtype=torch.uint8, device="cuda")
    text = "it fitted"
except torch.OutOfMemoryError as error:
    text = str(error)
listed = {}
try:
    import pynvml
    pynvml.nvmlInit()
    for p in pynvml.nvmlDeviceGetComputeRunningProcesses(
            pynvml.nvmlDeviceGetHandleByIndex(0)):
        listed[p.pid] = p.usedGpuMemory
    listed = [listed.get(child.pid), listed.get(os.getpid()), len(listed)]
except ImportError:
    listed = None
child.communicate()
torch.empty(60 * GIB, dtype=torch.uint8, device="cuda")
print(json.dumps([context, total, text, listed, child.pid]))
"""


@test
def processes_share_a_card():
    (context, total, text, listed, pid), _ = run(SHARE)
    assert 800 * MIB < context < 1400 * MIB, context  # of both processes
    equal(total, 60 * GIB + context)
    assert text.startswith("CUDA out of memory. Tried to allocate 25.00 GiB")
    assert f"Process {pid} has 50." in text, text
    if listed is not None:
        equal(listed[2], 2)
        equal(sum(listed[:2]), total - 2 * DRIVER)
        equal(listed[0], 50 * GIB + context // 2 - DRIVER)


ALLOCATOR = """
#include <stddef.h>
#include <sys/types.h>
int cudaMalloc(void **p, size_t bytes);
int cudaMallocManaged(void **p, size_t bytes, unsigned flags);
int cudaFree(void *p);
#ifdef MANAGED
#define cudaMalloc(p, bytes) cudaMallocManaged(p, bytes, 1)
#endif
static long taken, given;
void *take(ssize_t bytes, int device, void *stream)
{
    void *p = 0;
    taken += bytes > 0;
    return cudaMalloc(&p, bytes) ? 0 : p;
}
void give(void *p, ssize_t bytes, int device, void *stream)
{
    given++;
    cudaFree(p);
}
long count_taken(void) { return taken; }
long count_given(void) { return given; }
"""


def compile_allocator(folder, *options):
    path = os.path.join(folder, "allocator.so")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", *options, "-x", "c",
                    "-o", path, "-"], input=ALLOCATOR, text=True, check=True)
    return path


@test
def an_allocator_is_plugged_in():
    with tempfile.TemporaryDirectory() as folder:
        said, result = run("""
import ctypes, gc
counts = ctypes.CDLL(sys.argv[1])
torch.cuda.memory.change_current_allocator(
    torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "take", "give"))
torch.arange(3, device="cuda") * 2  # PyTorch's kernels take memory once
gc.collect()
start = used(0)
x = torch.ones(100 * MIB, dtype=torch.uint8, device="cuda")
y = torch.arange(5, device="cuda") * 2
grown = used(0) - start
values = y.tolist()
del x, y
gc.collect()
print(json.dumps([counts.count_taken(), counts.count_given(), grown,
                  used(0) - start, values]))
""", arguments=[compile_allocator(folder)])
    taken, given, grown, left, values = said
    equal((taken, given), (5, 5))
    equal((grown, left), (102 * MIB, 0))  # small ones share a page
    equal(values, [0, 2, 4, 6, 8])
    used = result["ranks"][0]["devices"][0]["peak_used_bytes"]
    assert 500 * MIB < used < 900 * MIB, used


@test
def managed_memory_may_be_more_than_the_card_s():
    with tempfile.TemporaryDirectory() as folder:
        said, result = run("""
import ctypes
torch.cuda.memory.change_current_allocator(
    torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "take", "give"))
parts = [torch.empty(50 << 30, dtype=torch.uint8, device="cuda")
         for _ in range(2)]
x = torch.empty(5, dtype=torch.long, device="cuda")
host = (ctypes.c_long * 5).from_address(x.data_ptr())
host[0] = 7
y = torch.nn.functional.relu(torch.randn(64, 64, device="cuda"))
y.sum().item()
print(json.dumps(x[:1].cpu().item()))
""", arguments=[compile_allocator(folder, "-DMANAGED")])
    equal(said, 7)
    equal(result["verdict"], "fits")
    assert any("managed memory" in note for note in result["notes"]), result


@test
def a_pool_has_an_allocator_of_its_own():
    with tempfile.TemporaryDirectory() as folder:
        said, _ = run("""
import ctypes
counts = ctypes.CDLL(sys.argv[1])
own = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "take", "give")
pool = torch.cuda.MemPool(own._allocator)
plain = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
with torch.cuda.use_mem_pool(pool):
    x = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
print(json.dumps([counts.count_taken(), torch.cuda.memory_allocated()]))
""", arguments=[compile_allocator(folder)])
    equal(said, [1, 35 * MIB])


@test
def memory_freed_early_is_told():
    said, result = run("""
import ctypes
runtime = ctypes.CDLL("libcudart.so.13" if torch.version.cuda > "13"
                      else "libcudart.so.12")
x = torch.ones(30 * MIB, dtype=torch.uint8, device="cuda")
address = ctypes.c_void_p(x.data_ptr())
codes = [runtime.cudaFree(address), runtime.cudaFree(address)]
del x
torch.cuda.synchronize()
print(json.dumps(codes))
""")
    equal(said, [0, 1])
    equal(result["notes"][0],
          "cudaFree: the program freed device memory twice")


if __name__ == "__main__":
    main()
