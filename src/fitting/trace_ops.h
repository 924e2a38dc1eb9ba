/* SPDX-License-Identifier: Apache-2.0
 * Kernels of PyTorch profiler traces as measurements of a GPU: each with its
 * name, grid, block and time, and with shapes where the trace has those of the
 * operator that launched it (record_shapes=True). */
#ifndef MEMSIM_FITTING_TRACE_OPS_H
#define MEMSIM_FITTING_TRACE_OPS_H

#include <stddef.h>

#include "common/base/map.h"
#include "runtime/cost/cost.h"

struct err;

struct trace_kernel {
    uint32_t name; /* index into names */
    uint32_t trace; /* 0, 1, 2 as they were read */
    uint32_t grid[3], block[3];
    double ns;
    double op_ns; /* with the other kernels of the same product; of WORK */
    struct work work;
    bool known; /* WORK has the bytes and the arithmetic, from the shapes */
};

/* Zeroed, it is empty. */
struct trace_ops {
    char gpu[64]; /* as the traces call it; "": they do not say */
    struct trace_kernel *kernels;
    size_t count, capacity;
    char **names;
    size_t name_count, name_capacity;
    struct map name_ids;
    size_t traces;
    bool takes_simulated; /* traces that memsim made, too */
    bool simulated;       /* there is one */
};

/* Is FILE, by its name, a profiler's trace? */
bool trace_ops_is_trace(const char *file);

/* Adds the kernels of the trace PATH but those of NCCL. Returns 0, or -1 with
 * ERR set: it cannot be read, has no kernels, or is of another GPU than those
 * before. */
int trace_ops_read(struct trace_ops *t, const char *path, struct err *err);

/* For readers of other files: adds a kernel called NAME, without grid, block
 * and work; NULL with ERR set: there are too many. The second: PATH is of
 * GPU; it returns 0, or -1 with ERR set where those before are of another. */
struct trace_kernel *trace_ops_add(struct trace_ops *t, const char *name,
                                   uint64_t ns, struct err *err);
int trace_ops_gpu(struct trace_ops *t, const char *gpu, const char *path,
                  struct err *err);

void trace_ops_fini(struct trace_ops *t);

#endif
