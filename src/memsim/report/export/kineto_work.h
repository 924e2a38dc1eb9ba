/* SPDX-License-Identifier: Apache-2.0
 * What the operations of a timeline work on, as arguments of their events: of a
 * collective those of PyTorch's profiler; of all others "work", the rule and
 * the words of a LAUNCH, for memsim import. */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_KINETO_WORK_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_KINETO_WORK_H

#include "common/base/map.h"
#include "common/trace/op.h"
#include "common/trace/trace_read.h"

/* Zeroed, it is empty. */
struct kineto_work {
    struct map texts;  /* by tag: of operations that are under way */
    struct map groups; /* struct kineto_group by the communicator's handle */
};

/* To be told each COMMUNICATOR. */
void kineto_work_group(struct kineto_work *k, const struct trace_item *item);

/* Keeps what OP, whose tag is TAG and whose name is NAME, works on. */
void kineto_work_keep(struct kineto_work *k, uint64_t tag, const struct op *op,
                      const char *name);

/* The arguments of the operation TAG, each behind a comma; NULL: none. The
 * caller frees them. */
char *kineto_work_take(struct kineto_work *k, uint64_t tag);

void kineto_work_fini(struct kineto_work *k);

#endif
