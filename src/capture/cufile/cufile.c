/* SPDX-License-Identifier: Apache-2.0
 * GPUDirect Storage in its compatible mode: files are read and written by the
 * host. As everywhere, the values of large reads are not kept. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cufile.h>

#include "capture/core/work/library_call.h"
#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/run/record.h"
#include "capture/core/memory/values.h"

#define VERSION    1150 /* 1.15, as cuFileGetVersion counts */
#define PART_BYTES 65536

/* What a CUfileHandle_t points to. */
struct file {
    int fd; /* ours: the program's own may want aligned buffers (O_DIRECT) */
};

static CUfileError_t answer_error(CUfileOpError error)
{
    return (CUfileError_t){.err = error, .cu_err = CUDA_SUCCESS};
}

static struct file *file_get(CUfileHandle_t handle)
{
    return memsim_handle_get(HANDLE_DESCRIPTOR, handle);
}

/* FD's file again, without its flags; -1 where it cannot be opened. */
static int reopen_file(int fd)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int way = fcntl(fd, F_GETFL);
    return way < 0 ? -1 : open(path, (way & O_ACCMODE) | O_CLOEXEC);
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t *handle,
                                   CUfileDescr_t *description)
{
    struct stat status;

    if (!handle || !description ||
        description->type != CU_FILE_HANDLE_TYPE_OPAQUE_FD)
        return answer_error(CU_FILE_INVALID_VALUE);
    int fd = reopen_file(description->handle.fd);
    if (fd < 0)
        return answer_error(CU_FILE_INVALID_FILE_TYPE);
    struct file *f = NULL;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode))
        f = memsim_handle_new(HANDLE_DESCRIPTOR, sizeof *f);
    if (!f) {
        close(fd);
        return answer_error(CU_FILE_INVALID_FILE_TYPE);
    }
    f->fd = fd;
    *handle = f;
    return answer_error(CU_FILE_SUCCESS);
}

void cuFileHandleDeregister(CUfileHandle_t handle)
{
    struct file *f = file_get(handle);

    if (!f)
        return;
    close(f->fd);
    memsim_handle_free(HANDLE_DESCRIPTOR, f);
}

/* Registering pins the buffer, which takes nothing more of the GPU. */
CUfileError_t cuFileBufRegister(const void *buffer, size_t bytes, int flags)
{
    (void)flags;
    return answer_error(buffer && bytes ? CU_FILE_SUCCESS
                                        : CU_FILE_INVALID_VALUE);
}

CUfileError_t cuFileBufDeregister(const void *buffer)
{
    return answer_error(buffer ? CU_FILE_SUCCESS : CU_FILE_INVALID_VALUE);
}

/* A piece of a file and where it goes, or comes from. */
struct piece {
    int fd;
    uint64_t address, bytes;
    off_t offset;
};

static void piece_record(uint32_t name, const struct piece *p)
{
    const struct call call = {.name = name,
                              .values = {p->address, p->bytes,
                                         (uint64_t)p->offset}};

    memsim_call(&call);
}

/* How much of PIECE the file has; -1 with errno. */
static ssize_t piece_present(const struct piece *p)
{
    struct stat status;

    if (fstat(p->fd, &status))
        return -1;
    if (p->offset >= status.st_size)
        return 0;
    uint64_t left = (uint64_t)(status.st_size - p->offset);
    return (ssize_t)(left < p->bytes ? left : p->bytes);
}

static ssize_t piece_read(const struct piece *p)
{
    char part[PART_BYTES];
    uint64_t done = 0;

    while (done < p->bytes) {
        uint64_t left = p->bytes - done;
        ssize_t got =
            pread(p->fd, part, left < sizeof part ? left : sizeof part,
                  p->offset + (off_t)done);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        memsim_values_copy(p->address + done, (uint64_t)part, (uint64_t)got);
        done += (uint64_t)got;
    }
    return (ssize_t)done;
}

static ssize_t piece_write(const struct piece *p)
{
    char part[PART_BYTES];
    uint64_t done = 0;

    while (done < p->bytes) {
        uint64_t left = p->bytes - done;
        uint64_t size = left < sizeof part ? left : sizeof part;

        memsim_values_copy((uint64_t)part, p->address + done, size);
        ssize_t put = pwrite(p->fd, part, size, p->offset + (off_t)done);
        if (put < 0)
            return -1;
        done += (uint64_t)put;
    }
    return (ssize_t)done;
}

/* Sets P's file and address. Returns whether the call is valid. */
static bool piece_locate(struct piece *p, CUfileHandle_t handle,
                         const void *buffer, off_t buffer_offset)
{
    const struct file *f = file_get(handle);

    if (!f || !buffer || p->offset < 0 || buffer_offset < 0)
        return false;
    p->fd = f->fd;
    p->address = (uint64_t)buffer + (uint64_t)buffer_offset;
    return true;
}

ssize_t cuFileRead(CUfileHandle_t handle, void *buffer, size_t bytes,
                   off_t file_offset, off_t buffer_offset)
{
    struct piece p = {.bytes = bytes, .offset = file_offset};

    if (!piece_locate(&p, handle, buffer, buffer_offset))
        return -(ssize_t)CU_FILE_INVALID_VALUE;
    piece_record(NAME_OF("cuFileRead"), &p);
    if (bytes > VALUES_COPY_BYTES && memsim_values_is_device(p.address))
        return piece_present(&p);
    return piece_read(&p);
}

ssize_t cuFileWrite(CUfileHandle_t handle, const void *buffer, size_t bytes,
                    off_t file_offset, off_t buffer_offset)
{
    struct piece p = {.bytes = bytes, .offset = file_offset};

    if (!piece_locate(&p, handle, buffer, buffer_offset))
        return -(ssize_t)CU_FILE_INVALID_VALUE;
    piece_record(NAME_OF("cuFileWrite"), &p);
    return piece_write(&p);
}

/* In stream order, which is now: the sizes and offsets may be set as late as
 * that. */
#define ASYNC(name, call, BUFFER)                                              \
    CUfileError_t name(CUfileHandle_t handle, BUFFER buffer, size_t *bytes,    \
                       off_t *file_offset, off_t *buffer_offset,               \
                       ssize_t *done, CUstream stream)                         \
    {                                                                          \
        (void)stream;                                                          \
        if (!bytes || !file_offset || !buffer_offset || !done)                 \
            return answer_error(CU_FILE_INVALID_VALUE);                        \
        *done = call(handle, buffer, *bytes, *file_offset, *buffer_offset);    \
        return answer_error(CU_FILE_SUCCESS);                                  \
    }

ASYNC(cuFileReadAsync, cuFileRead, void *)
ASYNC(cuFileWriteAsync, cuFileWrite, void *)

CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    return answer_error(CU_FILE_SUCCESS);
}

CUfileError_t cuFileStreamDeregister(CUstream stream)
{
    (void)stream;
    return answer_error(CU_FILE_SUCCESS);
}

static _Atomic long users;

CUfileError_t cuFileDriverOpen(void)
{
    if (memsim_device_open(memsim_device_current()))
        return answer_error(CU_FILE_DRIVER_NOT_INITIALIZED);
    users++;
    return answer_error(CU_FILE_SUCCESS);
}

CUfileError_t cuFileDriverClose(void)
{
    if (users > 0)
        users--;
    return answer_error(CU_FILE_SUCCESS);
}

long cuFileUseCount(void)
{
    return users;
}

/* Nothing of GPUDirect Storage, and the defaults of cufile.json in KiB. */
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *properties)
{
    if (!properties)
        return answer_error(CU_FILE_INVALID_VALUE);
    *properties = (CUfileDrvProps_t){
        .nvfs = {.poll_thresh_size = 4, .max_direct_io_size = 16384},
        .max_device_cache_size = 131072,
        .per_buffer_cache_size = 1024,
        .max_device_pinned_mem_size = 33554432,
    };
    return answer_error(CU_FILE_SUCCESS);
}

CUfileError_t cuFileDriverSetPollMode(bool poll, size_t threshold)
{
    (void)poll;
    (void)threshold;
    return answer_error(CU_FILE_SUCCESS);
}

#define LIMIT(name)                                                            \
    CUfileError_t name(size_t kib)                                             \
    {                                                                          \
        return answer_error(kib ? CU_FILE_SUCCESS : CU_FILE_INVALID_VALUE);    \
    }

LIMIT(cuFileDriverSetMaxDirectIOSize)
LIMIT(cuFileDriverSetMaxCacheSize)
LIMIT(cuFileDriverSetMaxPinnedMemSize)

CUfileError_t cuFileGetVersion(int *version)
{
    *version = VERSION;
    return answer_error(CU_FILE_SUCCESS);
}
