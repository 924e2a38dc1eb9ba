# SPDX-License-Identifier: Apache-2.0
"""A profile of layers: python3 layered_profile.py MICROBATCHES [WORD]...

MICROBATCHES of: an embedding, four layers of four kernels, a head and a loss; the
backward of the head, four layers of five, and of the embedding. Then the optimizer.
Each kernel takes 100 us, the optimizer 800. Words: "marks" has gradients, "ddp"
averages them over 4 ranks in one bucket in the last backward, "hook" by a kernel that
memsim does not know, "one" is a single thread, "loop" an optimizer that works on one
parameter after the other, "pipe" sends behind each forward, "tensor" splits
layers over two ranks.
"""
import json
import sys

words, microbatches = sys.argv[2:], int(sys.argv[1])
ADD = ("void at::native::vectorized_elementwise_kernel<4, "
       "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)")
LIST = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<>"
SCALE = ("void at::native::vectorized_elementwise_kernel<4, "
         "at::native::BUnaryFunctor<float, float, float, "
         "at::native::binary_internal::MulFunctor<float> >, "
         "std::array<char*, 2ul> >(int)")
bucketed = []  # elements of gradients
events, gpu, host, correlation = [], 3000.0, 100.0, 0


def kernel(name, thread, us=100, cat="kernel", **args):
    global gpu, host, correlation
    correlation += 1
    host += 10
    events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
                   "pid": 1, "tid": thread, "ts": host, "dur": 4,
                   "args": {"correlation": correlation}})
    events.append({"ph": "X", "cat": cat, "name": name, "pid": 0,
                   "tid": 7, "ts": gpu, "dur": us, "args": {
                       "device": 0, "stream": 7, "grid": [1024, 1, 1],
                       "block": [128, 1, 1], "correlation": correlation, **args}})
    gpu += us + 1


def bucket(thread, elements):
    """As Reducer::mark_variable_ready_dense does."""
    number = 20000 + len(events)
    events.append({"ph": "X", "cat": "cpu_op", "pid": 1, "tid": thread,
                   "name": "aten::mul", "ts": host + 9.5, "dur": 9, "args": {
                       "External id": number, "Input Dims": [[elements], []],
                       "Input type": ["float", "double"]}})
    kernel("hook" if "hook" in words else SCALE, thread, **{"External id": number})
    bucketed.append(elements)


def reduce(thread, elements, group, ranks):
    kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", thread, 300, **{
        "Collective name": "allreduce", "dtype": "Float",
        "In msg nelems": elements, "Out msg nelems": elements,
        "Group size": len(ranks), "Process Group Name": group,
        "Process Group Ranks": str(ranks)})


def average(thread):
    """The bucket's all-reduce, and what it came to back into the gradients."""
    reduce(thread, sum(bucketed), "data", [0, 1, 2, 3])
    for elements in bucketed:
        kernel("Memcpy DtoD (Device -> Device)", thread, 50, "gpu_memcpy",
               bytes=4 * elements)


def gradient(thread, elements):
    if "marks" in words or "ddp" in words:
        events.append({"ph": "X", "cat": "cpu_op", "pid": 1, "tid": thread,
                       "name": "torch::autograd::AccumulateGrad",
                       "ts": host + 6, "dur": 2, "args": {
                           "External id": 10000 + len(events),
                           "Input Dims": [[elements]],
                           "Input type": ["float"]}})
    if "ddp" in words and last:
        bucket(thread, elements)


other = 2 if "one" in words else 3
for i in range(microbatches):
    last = i + 1 == microbatches
    kernel("embed", 2)
    for _ in range(4):
        for name in "norm", "qkv", "attention", ADD:
            kernel(name, 2)
        if "tensor" in words:
            reduce(2, 1 << 20, "tensor", [0, 1])
    kernel("head", 2)
    kernel("loss", 2)
    if "pipe" in words:
        kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096>)", 2)
    kernel("head_back", other)
    gradient(other, 1 << 20)
    for _ in range(4):
        for name in "back1", "back2", "back3", "back4", "back5":
            kernel(name, other)
        gradient(other, 1 << 20)
    kernel("embed_back", other)
    gradient(other, 3 << 20)
    if bucketed:
        average(other)
for _ in range(4 if "loop" in words else 0):
    for name in "adam1", "adam2", "adam3", "adam4", "adam5", "adam6":
        kernel(name, 2)
kernel(LIST, 2, 800)
events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1",
               "pid": 1, "tid": 2, "ts": 50, "dur": gpu})
json.dump({"schemaVersion": 1, "deviceProperties": [
    {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85028372480}],
           "traceEvents": events}, sys.stdout)
