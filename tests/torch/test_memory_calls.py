# SPDX-License-Identifier: Apache-2.0
"""Every way in which PyTorch takes memory besides plain cudaMalloc: expandable
segments, cudaMallocAsync, other processes' tensors, pinned memory, pools."""
import gc
import json
import os
import subprocess
import sys

import torch
import torch.multiprocessing as mp
from harness import Skip, equal, main, test

MIB = 2**20
GPU = "cuda"
DRIVER_PART = 9240576  # of a context


def child(code, conf=""):
    """Runs CODE in a process of its own, with PYTORCH_CUDA_ALLOC_CONF=CONF;
    returns what its last line says, as JSON."""
    env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
    head = "import torch, json, gc\nMIB = 2**20\nGPU = 'cuda'\n"
    out = subprocess.run([sys.executable, "-c", head + code], env=env,
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out.splitlines()[-1])


GROW_AND_SHRINK = """
free = lambda: torch.cuda.mem_get_info()[0]
torch.zeros(1, device=GPU)
start = free()
a = torch.empty(300 * MIB, dtype=torch.uint8, device=GPU)
b = torch.empty(50 * MIB, dtype=torch.uint8, device=GPU)
grown = start - free()
reserved = torch.cuda.memory_reserved()
del a, b
gc.collect(); torch.cuda.synchronize(); torch.cuda.empty_cache()
values = torch.tensor([0, 1, 2, 3, 4]).to(GPU).tolist()
print(json.dumps([grown, reserved, start - free(), values]))
"""


@test
def expandable_segments_take_what_they_need():
    grown, reserved, left, values = child(GROW_AND_SHRINK,
                                          "expandable_segments:True")
    equal(values, [0, 1, 2, 3, 4])
    # CUDACachingAllocator.cpp, ExpandableSegment: large ones grow by 20 MiB
    equal(grown, 360 * MIB)
    equal(reserved, 2 * MIB + 360 * MIB)
    equal(left, 0)


@test
def expandable_segments_run_out_like_others():
    refused, used = child("""
blocks = []
try:
    while True:
        blocks.append(torch.empty(8 << 30, dtype=torch.uint8, device=GPU))
except torch.OutOfMemoryError as error:
    print(json.dumps([str(error)[:55], len(blocks)]))
""", "expandable_segments:True")
    equal(refused, "CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 h")
    equal(used, 9)


@test
def cuda_malloc_async_is_a_backend():
    grown, reserved, left, values = child(GROW_AND_SHRINK,
                                          "backend:cudaMallocAsync")
    equal(values, [0, 1, 2, 3, 4])
    equal(grown % (32 * MIB), 0)
    assert 350 * MIB <= grown + 32 * MIB <= 450 * MIB, grown
    equal(left, 0)


@test
def cuda_malloc_async_keeps_books():
    equal(child("""
assert torch.cuda.get_allocator_backend() == 'cudaMallocAsync'
a = torch.empty(1000, dtype=torch.uint8, device=GPU)
now = torch.cuda.memory_allocated()
del a
torch.cuda.reset_peak_memory_stats()
print(json.dumps([now, torch.cuda.memory_allocated(),
                  torch.cuda.max_memory_allocated(),
                  torch.cuda.memory_reserved() // MIB]))
""", "backend:cudaMallocAsync"), [1000, 0, 0, 32])


@test
def cuda_malloc_async_refuses():
    equal(child("""
try:
    torch.empty(200 << 30, dtype=torch.uint8, device=GPU)
except torch.OutOfMemoryError as error:
    print(json.dumps(str(error).splitlines()[0]))
""", "backend:cudaMallocAsync"),
          "Allocation on device 0 would exceed allowed memory. (out of memory)")


def receive(tasks, answers):
    t = tasks.get()
    answers.put((tuple(t.shape), torch.cuda.memory_allocated(),
                 torch.cuda.mem_get_info()[0]))
    del t
    tasks.get()


@test
def tensors_go_to_other_processes():
    context = mp.get_context("spawn")
    tasks, answers = context.Queue(), context.Queue()
    process = context.Process(target=receive, args=(tasks, answers))
    process.start()
    t = torch.ones(64 * MIB, dtype=torch.uint8, device=GPU)
    before = torch.cuda.mem_get_info()[0]
    tasks.put(t)
    shape, allocated, free = answers.get()
    equal((shape, allocated), ((64 * MIB,), 0))
    context_bytes = before - free  # the memory itself is paid for once
    assert 300 * MIB < context_bytes < 700 * MIB, context_bytes
    tasks.put(None)
    process.join()
    equal(process.exitcode, 0)


@test
def nvml_lists_this_process():
    try:
        import pynvml
    except ImportError:
        raise Skip("nvidia-ml-py is not installed") from None
    torch.ones(1, device=GPU)
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    processes = {p.pid: p.usedGpuMemory for p in
                 pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    free, total = torch.cuda.mem_get_info()
    assert os.getpid() in processes
    # NVML leaves out the driver's part of each process's context.
    equal(sum(processes.values()) + DRIVER_PART * len(processes),
          total - free)


@test
def pinned_memory_costs_the_card_nothing():
    free = torch.cuda.mem_get_info()[0]
    t = torch.arange(1000).pin_memory()
    equal(t.is_pinned(), True)
    equal(torch.cuda.mem_get_info()[0], free)
    equal(t.to(GPU, non_blocking=True)[-1].item(), 999)


@test
def a_memory_fraction_holds():
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.01)
    try:
        torch.empty(2 << 30, dtype=torch.uint8, device=GPU)
        raise AssertionError("2 GiB are more than a hundredth of the card")
    except torch.OutOfMemoryError as error:
        assert "allowed" in str(error) or "limited" in str(error), error
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@test
def a_mem_pool_is_apart():
    pool = torch.cuda.MemPool()
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    with torch.cuda.use_mem_pool(pool):
        t = torch.empty(30 * MIB, dtype=torch.uint8, device=GPU)
    equal(torch.cuda.memory_reserved() - before, 30 * MIB)
    del t
    torch.cuda.empty_cache()
    equal(torch.cuda.memory_reserved() - before, 30 * MIB)  # the pool's
    del pool
    gc.collect()
    torch.cuda.empty_cache()
    equal(torch.cuda.memory_reserved(), before)


@test
def kernels_compile_at_run_time():
    t = torch.full((100,), 0.5, device=GPU)
    equal(torch.erfinv(t).shape, t.shape)
    equal(torch.special.i1e(t).shape, t.shape)
    twice = torch.cuda.jiterator._create_jit_fn(
        "template <typename T> T twice(T x) { return x + x; }")
    equal(twice(t).shape, t.shape)


@test
def ranges_nest():
    equal(torch.cuda.nvtx.range_push("outer"), 0)  # -2 with nobody listening
    equal(torch.cuda.nvtx.range_push("inner"), 1)
    equal(torch.cuda.nvtx.range_pop(), 1)
    equal(torch.cuda.nvtx.range_pop(), 0)


if __name__ == "__main__":
    main()
