/* SPDX-License-Identifier: Apache-2.0
 * cuFile: a file's bytes reach device memory and come back; what is recorded,
 * what is refused. */
#include <cuda_runtime_api.h>
#include <cufile.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "cudnn_trace.h"

static int file_new(void)
{
    char path[] = "/tmp/memsim-cufile.XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0 && !unlink(path));
    CHECK(write(fd, "0123456789", 10) == 10);
    return fd;
}

static CUfileHandle_t handle_of(int fd)
{
    CUfileDescr_t description = {.handle.fd = fd,
                                 .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD};
    CUfileHandle_t handle = NULL;

    CHECK(!cuFileHandleRegister(&handle, &description).err);
    return handle;
}

TEST(bytes_reach_the_card_and_come_back)
{
    int fd = file_new();
    char *p, got[8] = "";

    CHECK(!cuFileDriverOpen().err);
    CHECK(!cudaMalloc((void **)&p, 4096));
    CUfileHandle_t handle = handle_of(fd);
    CHECK(cuFileRead(handle, p, 5, 2, 16) == 5);
    CHECK(!cudaMemcpy(got, p + 16, 5, cudaMemcpyDeviceToHost));
    CHECK_STR(got, "23456");
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.call.a, (uint64_t)p + 16);
    CHECK_UINT(seen.call.b, 5);
    CHECK_UINT(seen.call.c, 2);
    CHECK(cuFileRead(handle, p, 100, 6, 0) == 4); /* to the file's end */
    CHECK(cuFileWrite(handle, p + 16, 3, 7, 0) == 3);
    CHECK(pread(fd, got, 3, 7) == 3 && !memcmp(got, "234", 3));
    cuFileHandleDeregister(handle);
    CHECK(cuFileRead(handle, p, 5, 0, 0) == -(ssize_t)CU_FILE_INVALID_VALUE);
    CHECK(cuFileUseCount() == 1 && !cuFileDriverClose().err);
    CHECK(cuFileUseCount() == 0);
}

TEST(only_regular_files_are_taken)
{
    CUfileDescr_t description = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD};
    CUfileHandle_t handle;
    int ends[2];

    CHECK(!pipe(ends));
    description.handle.fd = ends[0];
    CHECK(cuFileHandleRegister(&handle, &description).err ==
          CU_FILE_INVALID_FILE_TYPE);
    description.handle.fd = -1;
    CHECK(cuFileHandleRegister(&handle, &description).err != CU_FILE_SUCCESS);
    CHECK(cuFileHandleRegister(NULL, &description).err ==
          CU_FILE_INVALID_VALUE);
}
