/* SPDX-License-Identifier: Apache-2.0
 * Where a CUDA driver would put each cudaMalloc. PyTorch's allocator takes the
 * best fit by (size, address), so which address the driver hands out decides
 * ties, and with them the peak. The rules were read from recordings made on
 * GPUs; doc/allocator.md has them with their evidence.
 *
 * It hands out numbers and touches none of the memory they name. Its own nodes
 * come from the caller's struct vaspace_memory, or from mmap where that is
 * NULL, never from malloc: it also runs inside someone else's process. There
 * are no locks. Every call is O(log n) in the live allocations. */
#ifndef MEMSIM_COMMON_CATALOGUE_VASPACE_H
#define MEMSIM_COMMON_CATALOGUE_VASPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A large page; what is reserved at once; smaller requests share a page, at
 * multiples of the last. */
#define VASPACE_GRANULE_BYTES (UINT64_C(2) << 20)
#define VASPACE_CHUNK_BYTES   (UINT64_C(32) << 20)
#define VASPACE_SMALL_BYTES   (UINT64_C(1) << 20)
#define VASPACE_SMALL_ALIGN   UINT64_C(512)

enum vaspace_model {
    VASPACE_CHUNKS,    /* Linux: 32 MiB chunks, each below the last */
    VASPACE_ASCENDING, /* WSL-like: the lowest place that fits */
    /* As VASPACE_CHUNKS, with the places that code leaves. Measured on an H200
     * (driver 580, CUDA 13, PyTorch 2.11): there are two chunks of code. The
     * first allocation of up to 2 MiB lies in the upper one, what is larger
     * goes below. With PyTorch's first kernel 6, 414 and 22 MiB get free. */
    VASPACE_CODE,
};

/* The model of a GPU of capability MAJOR where ORDER is asked for. */
enum vaspace_model vaspace_model_of(enum vaspace_model order, unsigned major);

/* Code lies in chunks of this size, of which cudaMalloc gets what is left. */
#define VASPACE_CODE_BYTES (UINT64_C(512) << 20)

/* Pages for nodes. `get` returns zeroed memory or NULL; `put` (may be NULL)
 * takes a piece back, whole. */
struct vaspace_memory {
    void *(*get)(size_t bytes, void *context);
    void (*put)(void *p, size_t bytes, void *context);
    void *context;
};

struct vaspace_tile;
struct vaspace_page;

/* Tiles that cover the window without a hole, as a treap and as a list. */
struct vaspace_level {
    struct vaspace_tile *root;
    uint64_t align;
};

/* Caller's memory; read used_bytes, leave the rest alone. */
struct vaspace {
    uint64_t base, size_bytes;
    uint64_t limit_bytes; /* physical memory, see vaspace_limit() */
    uint64_t used_bytes;  /* of physical memory: whole granules */
    size_t count;         /* live allocations */
    enum vaspace_model model;
    struct vaspace_memory memory;
    struct vaspace_level large, small;
    struct vaspace_tile *spare;
    struct vaspace_page *pages;
    uint64_t code; /* where the upper chunk of code starts; 0: nowhere */
    uint32_t seed;
};

/* Makes V manage the addresses [BASE, BASE + SIZE_BYTES), both multiples of
 * VASPACE_CHUNK_BYTES, BASE not 0. The window is of addresses, so make it
 * several times the GPU's memory; no memory limit is set. Returns 0, or -1
 * where the arguments are wrong or MEMORY gives nothing. */
int vaspace_init(struct vaspace *v, uint64_t base, uint64_t size_bytes,
                 enum vaspace_model model, const struct vaspace_memory *memory);

/* Gives V's nodes back. */
void vaspace_fini(struct vaspace *v);

/* Forgets every allocation; model, window and limit stay. 0 or -1. */
int vaspace_reset(struct vaspace *v);

/* WHO, a library or the driver ("kernels" of PyTorch's first), takes BYTES for
 * itself. In VASPACE_CODE that opens the places in chunks of code, or takes
 * addresses: a cuBLAS handle's whole chunks and its rest, and a cuDNN handle,
 * each at the lowest place, until vaspace_reset. The caller counts the memory.
 * 0, or -1: no node. */
int vaspace_library(struct vaspace *v, const char *who, uint64_t bytes);

/* From now on used_bytes shall not pass LIMIT_BYTES (UINT64_MAX: no limit). */
void vaspace_limit(struct vaspace *v, uint64_t limit_bytes);

/* The address of a new allocation of BYTES, or 0 where BYTES is 0, the limit
 * is reached, no address range fits or no node can be had. */
uint64_t vaspace_alloc(struct vaspace *v, uint64_t bytes);

/* Ends the allocation that starts at ADDRESS. Returns the bytes it was asked
 * with, 0 where there is none. */
uint64_t vaspace_free(struct vaspace *v, uint64_t address);

/* The live allocation that holds ADDRESS, anywhere inside the bytes asked for.
 * START and BYTES (either may be NULL) are set only where it returns true. */
bool vaspace_find(const struct vaspace *v, uint64_t address, uint64_t *start,
                  uint64_t *bytes);

/* The first live allocation that starts at FROM or above; for walking all of
 * them in ascending order, FROM = 0 and then START + 1. */
bool vaspace_next(const struct vaspace *v, uint64_t from, uint64_t *start,
                  uint64_t *bytes);

/* For tests: true where V's books agree with one another. O(n). */
bool vaspace_check(const struct vaspace *v);

#endif
