/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/torch_slots.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/core/torch/stack.h"
#include "common/base/text_begins.h"

/* Where functions are in the allocator's virtual table, and the pool in an
 * entry of its trace, by PyTorch version: printed by tools/torch-abi from each
 * wheel's headers. 0: not known, or there is none. */
static const struct abi {
    const char *version; /* "2.11." matches 2.11.0+cu130 */
    int attach;          /* attachAllocatorTraceTracker */
    int allocate, raw_alloc, raw_alloc_with_stream, begin_pool;
    int entry_pool_offset; /* from 2.8 on */
} abis[] = {
#include "capture/core/torch/torch_abi.inc"
};

/* std::function<void(const TraceEntry &)> of libstdc++. */
struct std_function {
    void *functor[2];
    bool (*manager)(void *, const void *, int);
    void (*invoker)(const void *functor, const struct trace_entry *entry);
};

/* A member function whose arguments all come in registers. */
typedef uint64_t slot_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                               uint64_t);

static const struct abi *abi;
static void *allocator;
static void (*before_other)(void);
static slot_function *real_allocate, *real_raw_alloc, *real_raw_with_stream,
    *real_begin_pool;
static _Thread_local uint64_t requested;

/* Before each request, without a lock of the allocator's. */
static void request_begin(uint64_t bytes)
{
    requested = bytes;
    stack_begin(bytes);
}

bool torch_slots_version(const char *library, char *version, size_t size)
{
    char path[4096], text[1024];
    const char *slash = strrchr(library, '/');

    if (!slash || snprintf(path, sizeof path, "%.*s/../version.py",
                           (int)(slash - library), library) >= (int)sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = '\0';
    const char *start = strstr(text, "__version__ = '");
    if (!start)
        return false;
    start += strlen("__version__ = '");
    snprintf(version, size, "%.*s", (int)strcspn(start, "'"), start);
    return true;
}

bool torch_slots_find(const char *version)
{
    void **place = dlsym(dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD),
                         "_ZN3c104cuda20CUDACachingAllocator9allocatorE");

    abi = NULL;
    allocator = place ? *place : NULL;
    for (size_t i = 0; allocator && i < sizeof abis / sizeof *abis; i++)
        if (text_begins(version, abis[i].version))
            abi = &abis[i];
    return abi;
}

/* DataPtr allocate(size_t), whose result has its place given first. */
static uint64_t stand_allocate(uint64_t result, uint64_t self, uint64_t bytes,
                               uint64_t d, uint64_t e, uint64_t f)
{
    request_begin(bytes);
    return real_allocate(result, self, bytes, d, e, f);
}

static uint64_t stand_raw_alloc(uint64_t self, uint64_t bytes, uint64_t c,
                                uint64_t d, uint64_t e, uint64_t f)
{
    request_begin(bytes);
    return real_raw_alloc(self, bytes, c, d, e, f);
}

static uint64_t stand_raw_with_stream(uint64_t self, uint64_t bytes,
                                      uint64_t stream, uint64_t d, uint64_t e,
                                      uint64_t f)
{
    if (stream)
        before_other();
    request_begin(bytes);
    return real_raw_with_stream(self, bytes, stream, d, e, f);
}

static uint64_t stand_begin_pool(uint64_t self, uint64_t b, uint64_t c,
                                 uint64_t d, uint64_t e, uint64_t f)
{
    before_other();
    return real_begin_pool(self, b, c, d, e, f);
}

/* The table is read-only once the library is relocated. */
static bool slot_replace(slot_function **table, int slot, slot_function *ours,
                         slot_function **real)
{
    uint64_t page = (uint64_t)&table[slot] & ~UINT64_C(4095);

    if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE))
        return false;
    *real = table[slot];
    table[slot] = ours;
    mprotect((void *)page, 4096, PROT_READ);
    return true;
}

bool torch_slots_watch(void (*otherwise)(void))
{
    if (!abi || !abi->allocate)
        return false;
    slot_function **table = *(slot_function ***)allocator;
    before_other = otherwise;
    return slot_replace(table, abi->allocate, stand_allocate, &real_allocate) &&
           slot_replace(table, abi->raw_alloc, stand_raw_alloc,
                        &real_raw_alloc) &&
           slot_replace(table, abi->raw_alloc_with_stream,
                        stand_raw_with_stream, &real_raw_with_stream) &&
           slot_replace(table, abi->begin_pool, stand_begin_pool,
                        &real_begin_pool);
}

uint64_t torch_slots_requested(void)
{
    return requested;
}

void torch_slots_pool(const struct trace_entry *entry, uint64_t pool[2])
{
    pool[0] = pool[1] = 0;
    if (abi && abi->entry_pool_offset)
        memcpy(pool, (const char *)entry + abi->entry_pool_offset,
               2 * sizeof *pool);
}

/* Nothing is owned, so cloning and destroying are copying and nothing. */
static bool functor_manage(void *to, const void *from, int operation)
{
    (void)operation;
    if (from)
        memcpy(to, from, 2 * sizeof(void *));
    return false;
}

void torch_slots_attach(void (*see)(const void *functor,
                                    const struct trace_entry *entry))
{
    const struct std_function tracker = {.manager = functor_manage,
                                         .invoker = see};

    if (!abi)
        return;
    void (**table)(void *, const struct std_function *) =
        *(void (***)(void *, const struct std_function *))allocator;
    table[abi->attach](allocator, &tracker);
}
