/* SPDX-License-Identifier: Apache-2.0
 * Device memory as the runtime gives it: addresses, limits, values, errors. */
#include <cuda_runtime_api.h>

#include "answers.h"
#include "check.h"

#define MIB (1ul << 20)

static size_t free_bytes(void)
{
    size_t available, total;

    return cudaMemGetInfo(&available, &total) ? 0 : available;
}

TEST(a_context_takes_memory)
{
    size_t available, total;

    CHECK(!cudaMemGetInfo(&available, &total));
    CHECK(available < total - 60 * MIB);
}

TEST(memory_comes_in_granules_and_goes)
{
    size_t before = free_bytes();
    void *a = NULL, *b = NULL;

    CHECK(!cudaMalloc(&a, 3 * MIB));
    CHECK_UINT(before - free_bytes(), 4 * MIB);
    CHECK_UINT((uint64_t)a % (2 * MIB), 0);
    CHECK(!cudaMalloc(&b, 1));
    CHECK_UINT((uint64_t)b % 512, 0);
    CHECK_UINT(before - free_bytes(), 6 * MIB);
    CHECK(!cudaFree(a));
    CHECK(!cudaFree(b));
    CHECK_UINT(free_bytes(), before);
}

TEST(addresses_follow_the_linux_driver)
{
    void *first, *second, *third;

    CHECK(!cudaMalloc(&first, 20 * MIB));
    CHECK(!cudaMalloc(&second, 100 * MIB));
    CHECK(!cudaMalloc(&third, 2 * MIB)); /* in the tail of the first */
    CHECK(second < first);
    CHECK_UINT((uint64_t)first % (32 * MIB), 0);
    CHECK_UINT((uint64_t)second % (32 * MIB), 0);
    CHECK((char *)third > (char *)second);
}

TEST(zero_and_too_much)
{
    void *p = (void *)1;

    CHECK(!cudaMalloc(&p, 0));
    CHECK(!p);
    CHECK_CODE(cudaMalloc(&p, 1ul << 40), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaMalloc(&p, SIZE_MAX), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaGetLastError(), cudaSuccess);
    CHECK_CODE(cudaMalloc(NULL, 5), cudaErrorInvalidValue);
}

TEST(the_card_ends_where_it_ends)
{
    size_t room = free_bytes() & ~(2 * MIB - 1), most = room;
    void *p, *q;

    while (cudaMalloc(&p, most) && most > 2 * MIB)
        most -= 2 * MIB;
    answer((int64_t)(room - most), "free bytes that one block cannot have");
    if (!is_real())
        CHECK_UINT(most, room);
    CHECK_CODE(cudaMalloc(&q, 2 * MIB), cudaErrorMemoryAllocation);
    CHECK(!cudaFree(p));
    CHECK(!cudaMalloc(&q, 2 * MIB));
}

TEST(bad_frees_are_told)
{
    int host;
    void *p;

    CHECK(!cudaFree(NULL));
    CHECK_CODE(cudaFree(&host), cudaErrorInvalidValue);
    CHECK(!cudaMalloc(&p, 4 * MIB));
    CHECK_CODE(cudaFree((char *)p + 512), cudaErrorInvalidValue);
    CHECK(!cudaFree(p));
    CHECK_CODE(cudaFree(p), cudaErrorInvalidValue);
}

TEST(small_values_round_trip)
{
    float in[4] = {1, 2, 3, 4}, out[4];
    float *p, *q;

    CHECK(!cudaMalloc((void **)&p, 1024));
    CHECK(!cudaMalloc((void **)&q, 1024));
    CHECK(!cudaMemcpy(p, in, sizeof in, cudaMemcpyHostToDevice));
    CHECK(!cudaMemcpy(q, p, sizeof in, cudaMemcpyDeviceToDevice));
    CHECK(!cudaMemcpy(out, q + 1, 3 * sizeof *out, cudaMemcpyDeviceToHost));
    CHECK(out[0] == 2 && out[2] == 4);
    CHECK(!cudaMemset(p, 0xff, 8));
    CHECK(!cudaMemcpy(out, p, sizeof out, cudaMemcpyDefault));
    CHECK(!memcmp(out, "\377\377\377\377\377\377\377\377", 8));
    CHECK(out[3] == 4);
}

TEST(a_new_allocation_reads_as_zeros)
{
    uint64_t word = 42, *p, *q;

    CHECK(!cudaMalloc((void **)&p, 2 * MIB));
    CHECK(!cudaMemcpy(p + 7, &word, 8, cudaMemcpyHostToDevice));
    CHECK(!cudaFree(p));
    CHECK(!cudaMalloc((void **)&q, 2 * MIB));
    CHECK(p == q);
    CHECK(!cudaMemcpy(&word, q + 7, 8, cudaMemcpyDeviceToHost));
    CHECK_UINT(word, 0);
}

TEST(copies_outside_an_allocation_fail)
{
    char host[64];
    char *p;

    CHECK(!cudaMalloc((void **)&p, 2 * MIB));
    CHECK_CODE(cudaMemcpy(p + 2 * MIB - 8, host, 64, cudaMemcpyHostToDevice),
               cudaErrorInvalidValue);
    CHECK_CODE(cudaMemset(p - 8, 0, 16), cudaErrorInvalidValue);
    CHECK_CODE(cudaMemcpy(p, NULL, 8, cudaMemcpyHostToDevice),
               cudaErrorInvalidValue);
}

TEST(pointers_tell_what_they_are)
{
    struct cudaPointerAttributes a;
    void *device, *pinned;
    int host;

    CHECK(!cudaMalloc(&device, 100));
    CHECK(!cudaHostAlloc(&pinned, 100, 0));
    CHECK(!cudaPointerGetAttributes(&a, (char *)device + 50));
    CHECK(a.type == cudaMemoryTypeDevice && a.device == 0);
    CHECK(!cudaPointerGetAttributes(&a, pinned));
    CHECK(a.type == cudaMemoryTypeHost && a.hostPointer == pinned);
    CHECK(!cudaPointerGetAttributes(&a, &host));
    CHECK(a.type == cudaMemoryTypeUnregistered);
    CHECK(!cudaFreeHost(pinned));
    CHECK_CODE(cudaFreeHost(pinned), cudaErrorInvalidValue);
    CHECK_CODE(cudaHostUnregister(&host), cudaErrorHostMemoryNotRegistered);
}

TEST(a_host_that_follows_a_device_pointer_faults)
{
    volatile char *p;
    int status;

    CHECK(!cudaMalloc((void **)&p, 100));
    if (!fork())
        _exit(*p);
    wait(&status);
    CHECK(WIFSIGNALED(status));
}

TEST(managed_memory_is_the_host_s_too)
{
    struct cudaPointerAttributes a;
    size_t before = free_bytes();
    void *device, *other;
    int *p, value;

    CHECK(!cudaMallocManaged((void **)&p, 3 * MIB, cudaMemAttachGlobal));
    CHECK(!cudaMalloc(&device, 4096));
    p[7] = 77;
    CHECK(!cudaMemcpy(device, p, 4096, cudaMemcpyHostToDevice));
    CHECK(!cudaMemcpy(&value, (int *)device + 7, 4, cudaMemcpyDeviceToHost));
    CHECK(value == 77);
    CHECK(!cudaMemcpy(p + 8, (int *)device + 7, 4, cudaMemcpyDefault));
    CHECK(p[8] == 77);
    CHECK(!cudaPointerGetAttributes(&a, p + 100));
    CHECK(a.type == cudaMemoryTypeManaged && a.devicePointer == p + 100);
    CHECK_CODE(cudaFreeHost(p), cudaErrorInvalidValue);
    CHECK(!cudaFree(p));
    CHECK_CODE(cudaFree(p), cudaErrorInvalidValue);
    CHECK(!cudaFree(device));
    CHECK_UINT(free_bytes(), before - 126 * MIB); /* the first takes more */
    CHECK(!cudaHostAlloc(&other, 100, cudaHostAllocMapped));
    CHECK_CODE(cudaFree(other), cudaErrorInvalidValue);
    CHECK(!cudaFreeHost(other));
}

TEST(limits_are_remembered_until_the_reset)
{
    size_t value = 0;

    CHECK(!cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    CHECK(value == 8 << 20);
    CHECK(!cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
    CHECK(!cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    CHECK(value == 64 << 20);
    CHECK(!cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 128));
    CHECK(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 1000));
    CHECK(!cudaDeviceGetLimit(&value, cudaLimitMaxL2FetchGranularity));
    CHECK(value == 128);
    ANSWER_CODE(cudaDeviceSetLimit((enum cudaLimit)77, 1),
                cudaErrorUnsupportedLimit, "a limit that there is not");
    CHECK_CODE(cudaDeviceGetLimit(NULL, cudaLimitStackSize),
               cudaErrorInvalidValue);
    CHECK(!cudaDeviceReset());
    CHECK(!cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    CHECK(value == 8 << 20);
}
