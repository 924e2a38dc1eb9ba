/* SPDX-License-Identifier: Apache-2.0
 * The largest blocks of a process's allocators in a Perfetto trace: a slice
 * each, from its allocation to its free, with where it was asked for. */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_PERFETTO_BLOCKS_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_PERFETTO_BLOCKS_H

#include "common/base/map.h"
#include "common/trace/play.h"
#include "memsim/report/export/perfetto.h"

/* How many are written at most. Where there are more, the smallest ones are
 * left out. */
#define PERFETTO_BLOCKS 20000

/* Zeroed, it is empty. */
struct perfetto_blocks {
    struct perfetto_block {
        uint64_t device, address, bytes;
        uint64_t begin_ns, end_ns; /* 0: it was never freed */
        uint64_t operation, module, shape, stack; /* ids of names, or 0 */
    } * rows;
    size_t count, capacity;
    uint64_t least_bytes;   /* smaller ones are left out */
    struct map live;        /* 1 + place of a row, by device and address */
    struct map modules;     /* ids of names, by number */
    struct map texts;       /* copies of names, by id */
};

/* Takes the trace's next record, of any kind. */
void perfetto_blocks_take(struct perfetto_blocks *b,
                          const struct trace_item *item,
                          const struct trace_names *names);

/* Writes them as slices of TRACK's process; what was never freed ends at
 * END_NS. */
void perfetto_blocks_write(const struct perfetto_blocks *b, struct perfetto *to,
                           struct perfetto_track track, uint64_t end_ns);

void perfetto_blocks_fini(struct perfetto_blocks *b);

#endif
