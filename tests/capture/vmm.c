/* SPDX-License-Identifier: Apache-2.0
 * Virtual memory: who pays when, what may be used when. */
#include <cuda.h>
#include <unistd.h>

#include "answers.h"
#include "check.h"

#define MIB (1ul << 20)

static const CUmemAllocationProp plain = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
};
static const CUmemAccessDesc all = {
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static void start(void)
{
    CUcontext context;

    CHECK(!cuInit(0));
    CHECK(!cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(!cuCtxSetCurrent(context));
}

static size_t free_bytes(void)
{
    size_t available, total;

    return cuMemGetInfo(&available, &total) ? 0 : available;
}

TEST(granules_are_two_mebibytes)
{
    CUmemAllocationProp host = plain;
    CUmemGenericAllocationHandle h;
    size_t granule;

    start();
    CHECK(!cuMemGetAllocationGranularity(&granule, &plain,
                                         CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    CHECK_UINT(granule, 2 * MIB);
    CHECK_CODE(cuMemCreate(&h, MIB, &plain, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(cuMemCreate(&h, 0, &plain, 0), CUDA_ERROR_INVALID_VALUE);
    host.location.type = CU_MEM_LOCATION_TYPE_HOST;
    ANSWER_CODE(cuMemCreate(&h, 2 * MIB, &host, 0), CUDA_ERROR_NOT_SUPPORTED,
                "physical memory of the host");
}

TEST(the_card_pays_for_memory_not_for_addresses)
{
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;

    start();
    size_t before = free_bytes();
    CHECK(!cuMemAddressReserve(&p, 90ul << 30, 0, 0, 0));
    CHECK_UINT(free_bytes(), before);
    CHECK(!cuMemCreate(&h, 20 * MIB, &plain, 0));
    CHECK_UINT(free_bytes(), before - 20 * MIB);
    CHECK(!cuMemMap(p, 20 * MIB, 0, h, 0));
    CHECK(!cuMemRelease(h));
    CHECK_UINT(free_bytes(), before - 20 * MIB); /* the map holds it */
    CHECK(!cuMemUnmap(p, 20 * MIB));
    CHECK_UINT(free_bytes(), before);
    CHECK(!cuMemAddressFree(p, 90ul << 30));
    CHECK_CODE(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(cuMemCreate(&h, 200ul << 30, &plain, 0),
               CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(maps_are_used_as_one_range)
{
    CUmemGenericAllocationHandle a, b;
    CUdeviceptr p, base;
    char in[100] = "across", out[100] = "";
    size_t bytes;

    start();
    CHECK(!cuMemAddressReserve(&p, 64 * MIB, 0, 0, 0));
    CHECK(!cuMemCreate(&a, 2 * MIB, &plain, 0));
    CHECK(!cuMemCreate(&b, 2 * MIB, &plain, 0));
    CHECK(!cuMemMap(p, 2 * MIB, 0, a, 0));
    CHECK(!cuMemMap(p + 2 * MIB, 2 * MIB, 0, b, 0));
    CHECK_CODE(cuMemcpyHtoD(p, in, 100), CUDA_ERROR_INVALID_VALUE);
    CHECK(!cuMemSetAccess(p, 4 * MIB, &all, 1));
    CHECK(!cuMemcpyHtoD(p + 2 * MIB - 50, in, 100));
    CHECK(!cuMemcpyDtoH(out, p + 2 * MIB - 50, 100));
    CHECK_STR(out, "across");
    CHECK(!cuMemGetAddressRange(&base, &bytes, p + 3 * MIB));
    CHECK(base == p + 2 * MIB && bytes == 2 * MIB); /* its own map */
    CHECK_CODE(cuMemcpyHtoD(p + 4 * MIB - 50, in, 100),
               CUDA_ERROR_INVALID_VALUE);
    CHECK(!cuMemUnmap(p, 4 * MIB));
    CHECK(!cuMemMap(p, 2 * MIB, 0, a, 0));
    CHECK(!cuMemSetAccess(p, 2 * MIB, &all, 1));
    CHECK(!cuMemcpyDtoH(out, p + 2 * MIB - 50, 50));
    CHECK_STR(out, "across"); /* a handle keeps its contents */
    CHECK(!cuMemUnmap(p, 2 * MIB));
    CHECK(!cuMemMap(p, 2 * MIB, 0, b, 0)); /* which end a's there */
    CHECK(!cuMemUnmap(p, 2 * MIB));
    CHECK(!cuMemMap(p, 2 * MIB, 0, a, 0));
    CHECK(!cuMemSetAccess(p, 2 * MIB, &all, 1));
    CHECK(!cuMemcpyDtoH(out, p + 2 * MIB - 50, 50));
    CHECK_STR(out, "");
}

TEST(contents_move_with_their_handle)
{
    CUmemGenericAllocationHandle a;
    char in[100] = "moved", out[100] = "";
    CUdeviceptr p;

    start();
    CHECK(!cuMemAddressReserve(&p, 64 * MIB, 0, 0, 0));
    CHECK(!cuMemCreate(&a, 2 * MIB, &plain, 0));
    CHECK(!cuMemMap(p, 2 * MIB, 0, a, 0));
    CHECK(!cuMemSetAccess(p, 2 * MIB, &all, 1));
    CHECK(!cuMemcpyHtoD(p + 4096, in, 100));
    CHECK(!cuMemUnmap(p, 2 * MIB));
    CHECK(!cuMemMap(p + 8 * MIB, 2 * MIB, 0, a, 0));
    CHECK(!cuMemSetAccess(p + 8 * MIB, 2 * MIB, &all, 1));
    CHECK(!cuMemcpyDtoH(out, p + 8 * MIB + 4096, 100));
    CHECK_STR(out, "moved");
}

TEST(wrong_maps_are_refused)
{
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;

    start();
    CHECK(!cuMemAddressReserve(&p, 8 * MIB, 0, 0, 0));
    CHECK(!cuMemCreate(&h, 4 * MIB, &plain, 0));
    CHECK_CODE(cuMemMap(p + 1, 4 * MIB, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
    ANSWER_CODE(cuMemMap(p, 8 * MIB, 0, h, 0), CUDA_ERROR_INVALID_VALUE,
                "a map of more than the handle has");
    ANSWER_CODE(cuMemMap(p + 6 * MIB, 4 * MIB, 0, h, 0),
                CUDA_ERROR_INVALID_VALUE, "a map beyond its addresses");
    ANSWER_CODE(cuMemUnmap(p, 4 * MIB), CUDA_ERROR_INVALID_VALUE,
                "an unmap of what is not mapped");
    CHECK(!cuMemMap(p, 4 * MIB, 0, h, 0));
    CHECK_CODE(cuMemMap(p, 4 * MIB, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(cuMemUnmap(p, 2 * MIB), CUDA_ERROR_INVALID_VALUE); /* a part */
    CHECK_CODE(cuMemUnmap(p + 2 * MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(cuMemAddressFree(p, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(cuMemSetAccess(p, 8 * MIB, &all, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(memory_travels_by_descriptor)
{
    CUmemAllocationProp shared = plain;
    CUmemGenericAllocationHandle h, again;
    CUmemAllocationProp told;
    int fd = -1;

    start();
    shared.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CHECK(!cuMemCreate(&h, 2 * MIB, &shared, 0));
    CHECK(!cuMemExportToShareableHandle(
        &fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    size_t before = free_bytes();
    CHECK(!cuMemImportFromShareableHandle(
        &again, (void *)(intptr_t)fd,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CHECK_UINT(free_bytes(), before); /* its owner has paid */
    CHECK(!cuMemGetAllocationPropertiesFromHandle(&told, again));
    CHECK(told.location.id == 0);
    CHECK(!cuMemRelease(again));
    close(fd);
    CHECK(!cuMemCreate(&h, 2 * MIB, &plain, 0));
    CHECK_CODE(cuMemExportToShareableHandle(
                   &fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               CUDA_ERROR_INVALID_VALUE);
}
