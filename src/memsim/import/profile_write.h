/* SPDX-License-Identifier: Apache-2.0
 * A linked profile as a trace, for `memsim replay`. */
#ifndef MEMSIM_MEMSIM_IMPORT_PROFILE_WRITE_H
#define MEMSIM_MEMSIM_IMPORT_PROFILE_WRITE_H

#include "common/trace/trace.h"
#include "memsim/import/profile.h"

/* The SETTING of a profile of a GPU, and of one that memsim made. */
#define PROFILE_MEASURED  TRACE_IMPORTED "kineto"
#define PROFILE_SIMULATED TRACE_IMPORTED "simulated"

/* Writes P, rank RANK of RANKS, to the new file PATH. Times begin at ORIGIN_NS
 * of the profile's clock; nothing of P is earlier. CAPACITY_BYTES is the GPU's
 * memory. Returns 0, or -1 with ERR set; what was written then stays. */
struct profile_target {
    const char *path;
    const char *gpu; /* device name for the DEVICE record */
    uint64_t capacity_bytes;
    int64_t origin_ns;
    uint32_t rank, ranks;
};
int profile_write(struct profile *p, const struct profile_target *target,
                  struct err *err);

/* The earliest time in P. */
int64_t profile_origin(const struct profile *p);

#endif
