/* SPDX-License-Identifier: Apache-2.0
 * A kernel and a launch of it: plain data for the other folders. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_LAUNCH_H
#define MEMSIM_CAPTURE_CORE_BASE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct compute;
struct kernel_rule;
struct work_kernel;

struct kernel_launch;

/* Carries out LAUNCH of a kernel, as COMPUTE says of it. */
typedef void compute_run(const struct compute *compute,
                         const struct kernel_launch *launch);

#define REACH_UNLIMITED UINT64_MAX

/* How many bytes a kernel reaches through an argument, at most. */
struct kernel_reach {
    uint64_t program; /* one program, which is a block of threads */
    uint64_t all;
};

struct kernel {
    uint32_t name; /* memsim_name() of the mangled one */
    uint32_t shared_static_bytes;
    uint32_t shared_limit_bytes; /* dynamic ones that a launch may ask for */
    uint32_t pointers; /* bit i: argument i is an address, certainly */
    uint64_t written;  /* bit i: it writes what argument i points to */
    bool lacks_code;   /* none that the GPU runs, in what it was compiled to */
    enum {
        KERNEL_KNOWN,     /* what it writes is found out elsewhere, if at all */
        KERNEL_WRITES,    /* what WRITTEN says */
        KERNEL_STORES,    /* the same, of a kernel of PyTorch's */
        KERNEL_MAY_WRITE, /* something, of what any argument points to */
    } writes;
    const uint16_t *parameter_bytes; /* the size of each; 0: not an address */
    uint32_t parameter_count;        /* as far as they are known */
    const struct kernel_reach *reaches; /* of the first arguments */
    uint32_t reach_count;
    const struct kernel_rule *rule;  /* NULL: nothing known of its arguments */
    const struct work_kernel *work;  /* for the rule: what the name says */
    compute_run *run;                /* NULL: not carried out */
    const struct compute *compute;   /* for RUN */
};

struct kernel_launch {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint64_t stream;
    void **arguments; /* one pointer each; NULL where not known */
};

#endif
