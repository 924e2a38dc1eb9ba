/* SPDX-License-Identifier: Apache-2.0
 * The live blocks of one allocator on one GPU, in groups, and the bytes of
 * those groups at the peak. The cost of a new peak does not depend on the
 * number of live blocks. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_TRACKER_H
#define MEMSIM_MEMSIM_ATTRIBUTION_TRACKER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/map.h"
#include "memsim/attribution/label.h"

#define PEAK_LABEL_BYTES 96

/* One row of the memory at the peak. */
struct peak_thing {
    char label[PEAK_LABEL_BYTES];
    uint64_t bytes; /* of all its blocks */
    uint64_t count; /* of blocks; 0: it has none */
    const char *category;           /* NULL: it and the rest are not known */
    char module[PEAK_LABEL_BYTES];  /* "layers.*.mlp"; "": none */
    char operation[PEAK_LABEL_BYTES]; /* that allocated them; "": not known */
    char where[PEAK_LABEL_BYTES];     /* "train.py:31"; "": not recorded */
    char shape[PEAK_LABEL_BYTES];     /* "float32 8x1024"; "": not known */
};

/* Zeroed, it is empty. */
struct tracker {
    struct map groups;
    size_t group_count;
    size_t sweep_at; /* the number of groups at which to remove empty ones */
    uint64_t peaks;  /* how often the peak was raised */
    uint64_t current_bytes, peak_bytes;
};

struct block {
    uint64_t address; /* for the caller */
    uint64_t requested_bytes;
    uint64_t under_bytes, over_bytes; /* for the caller: on the GPU it may be
                                         so much smaller or larger */
    uint64_t born; /* the tracker's `peaks` before it was counted */
    struct tracker *tracker;
    struct group *group;
    struct block *next, **previous; /* list of blocks that are not used yet */
};

/* Adds a new block, which is not used yet and is in no list. */
struct block *tracker_add(struct tracker *t, uint64_t bytes,
                          uint64_t requested_bytes);

/* Sets the peak to PEAK_BYTES: the live blocks now are those of the peak. */
void tracker_raise(struct tracker *t, uint64_t peak_bytes);

/* Moves B to LABEL's group, also at the peak if it was live then. */
void block_label(struct block *b, const struct label *label);

/* Puts B at the head of LIST; the second removes it from its list, if any. */
void block_wait(struct block *b, struct block **list);
void block_wait_end(struct block *b);

/* Removes B and frees it. */
void block_drop(struct block *b);

/* Sets *THINGS to the memory at the peak, by label and size, largest first.
 * Equal labels are merged. The caller frees it. Returns the number of rows. */
size_t tracker_things(const struct tracker *t, const struct trace_names *names,
                      struct peak_thing **things);

/* Compares two rows for qsort: largest first. */
int thing_compare(const void *x, const void *y);

/* Frees the groups; the caller frees the blocks. */
void tracker_fini(struct tracker *t);

#endif
