/* SPDX-License-Identifier: Apache-2.0
 * Data parallelism of a job on one GPU, by its profile: what
 * DistributedDataParallel would do is put in. memsim import marks where each
 * gradient was ready:
 *
 *   backward  g g g       g g g g g            g      optimizer
 *   becomes   * * * [reduce] * * * * * [reduce] * [reduce] wait copies
 *
 * with a kernel (*) that brings each gradient into its bucket, all-reduces on a
 * stream of their own, and copies back. */
#ifndef MEMSIM_MEMSIM_CHANGE_REPLICAS_H
#define MEMSIM_MEMSIM_CHANGE_REPLICAS_H

#include "common/base/err.h"
#include "common/base/range.h"
#include "memsim/change/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replicas_report {
    size_t collectives; /* of the recording, that may average gradients: then
                           nothing is put in */
    uint32_t steps, gradients, buckets; /* the last two of the last step */
    uint64_t bytes;                     /* of a step's gradients */
    bool accumulates; /* later backwards of a step add to others' gradients */
};

struct replicas {
    uint32_t ranks;
    uint32_t group;  /* of a pipeline's stages, each of which has its own */
    uint32_t stages; /* of the pipeline; 1: there is none */
};

/* The ranks that average with this one of R's job: that rank of each replica.
 */
struct range replicas_members(const struct replicas *replicas,
                              const struct records *r);

/* Writes the trace FROM with gradients that are averaged over RANKS ranks to
 * the new file TO; no file where it has collectives. Gradients to which a later
 * backward of the step adds are averaged there. Returns 0, or -1 with ERR set:
 * it has no marks of gradients. */
int replicas_change(const struct replicas *replicas, const char *from,
                    const char *to, struct replicas_report *report,
                    struct err *err);

#endif
