/* SPDX-License-Identifier: Apache-2.0
 * A recording at another size of the job: the model's width, the length of its
 * sequences, its batch.
 *
 * One recording does not say which numbers follow from the size: 3072 is 4
 * times a width of 768 and 3 times a length of 1024. Two do. Each operation of
 * the first recording is compared with the same one of the second, number by
 * number (size_law.h), and is written as it is at the wanted size. */
#ifndef MEMSIM_MEMSIM_CHANGE_SIZES_H
#define MEMSIM_MEMSIM_CHANGE_SIZES_H

#include "common/base/err.h"
#include "common/trace/op_trace.h"
#include "memsim/change/size_law.h"

/* Nanoseconds that the cost models say OP takes; 0: they do not know it. */
typedef uint64_t sizes_price(void *context, const struct op *op,
                             const struct trace_names *names);

struct sizes_change {
    const char *what; /* "hidden" */
    struct size_points points;
    sizes_price *price; /* for profiles; NULL: no models */
    void *context;      /* its first argument */
};

struct sizes_report {
    uint32_t steps, steps_kept; /* changed; warm-up that cannot be */
    /* Operations of the changed steps: as recorded; with numbers that follow a
     * power of the size; with some that lie on a line. */
    size_t same, powers, lines;
    size_t others;  /* whose kernels differ in the two: the first one's stays */
    size_t rounded; /* whose blocks or threads are an estimate */
    /* Of a profile: durations by the models, as far from them as in both; on a
     * power law through the two. */
    size_t modelled, times;
    uint64_t device_ns, doubtful_ns; /* of the steps: of all operations; of
                                        those beyond the two profiles by a power
                                        law alone */
};

/* Writes the recording FIRST at the wanted size to TO, a new file. Returns 0,
 * or -1 with ERR set: one cannot be read or written, the two do not have the
 * same operations, or a number gives no whole one. */
int sizes_change(const struct sizes_change *change, const char *first,
                 const char *second, const char *to,
                 struct sizes_report *report, struct err *err);

#endif
