/* SPDX-License-Identifier: Apache-2.0
 * The kernel in the place of one of NCCL's. It moves what this rank gets if all
 * ranks send what this one sends, and holds its thread blocks until its time is
 * over. */
#ifndef MEMSIM_CAPTURE_EMULATE_KERNEL_H
#define MEMSIM_CAPTURE_EMULATE_KERNEL_H

#include <stdint.h>

struct emulated {
    uint64_t stream;
    uint64_t send, receive;
    uint64_t count;  /* elements of a share */
    uint64_t shares; /* that are written, each the same; 0: nothing is */
    int type;        /* ncclDataType_t */
    double factor;   /* of each element; 1: they are copied */
    uint64_t ns;     /* from the moment when the slowest rank has come */
    uint64_t nodes;  /* 1, or more */
    double lag; /* by how much longer than this rank the slowest one needs from
                   one collective to the next; 0.02: 2% */
    uint64_t gate, ticket; /* it waits until *GATE is TICKET; 0: it does not */
    uint32_t blocks;
};

/* Gives K to the GPU, DEVICE, which is the current one. Returns the driver's
 * code (CUresult). */
int kernel_launch(int device, const struct emulated *k);

/* What STREAM waits for, behind a kernel: NS, and PARTS millionths of the time
 * since the stamp that is NUMBER'd so. A stamp is 1 ns with no parts. */
struct emulated_delay {
    uint64_t stream;
    uint64_t ns, parts;
    uint64_t stamp; /* its number, of those at work at a time; 0: none */
};

/* Gives D to the GPU, DEVICE, which is the current one, as a recorded call.
 * Returns the driver's code. */
int kernel_delay(int device, const struct emulated_delay *d);

#endif
