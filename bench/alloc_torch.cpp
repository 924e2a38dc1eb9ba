// SPDX-License-Identifier: Apache-2.0
// The calls that bench/alloc wrote, made to PyTorch's own allocator over bare
// stubs: alloc_torch CALLS [REPEATS]. Prints calls a second. Nothing records
// its history or listens to it.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <algorithm>
#include <vector>

struct call {
    uint64_t is_alloc, block, bytes, stream;
};

static std::vector<call> read_calls(const char *path)
{
    std::vector<call> calls;
    FILE *in = fopen(path, "rb");
    call c;

    while (in && fread(&c, sizeof c, 1, in) == 1)
        calls.push_back(c);
    if (in)
        fclose(in);
    return calls;
}

static double now()
{
    timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double play(const std::vector<call> &calls, std::vector<void *> &blocks)
{
    using namespace c10::cuda::CUDACachingAllocator;
    double start = now();

    for (const call &c : calls) {
        void *&block = blocks[c.block];

        if (c.is_alloc) {
            block = raw_alloc_with_stream(c.bytes, nullptr);
        } else {
            raw_delete(block);
            block = nullptr;
        }
    }
    return now() - start;
}

int main(int argc, char **argv)
{
    std::vector<call> calls = read_calls(argc > 1 ? argv[1] : "");
    double best = 1e9;
    size_t count = 0;

    for (const call &c : calls)
        count = std::max<size_t>(count, c.block + 1);
    c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count());
    for (int n = argc > 2 ? atoi(argv[2]) : 5; n > 0; n--) {
        std::vector<void *> blocks(count);
        double took = play(calls, blocks);

        best = took < best ? took : best;
        for (void *block : blocks)
            if (block)
                c10::cuda::CUDACachingAllocator::raw_delete(block);
        c10::cuda::CUDACachingAllocator::emptyCache();
    }
    printf("%-28s %8.3f s  %7.2f million calls/s\n", "PyTorch's allocator",
           best, (double)calls.size() / best / 1e6);
    return calls.empty();
}
