/* SPDX-License-Identifier: Apache-2.0
 * The live blocks of one allocator on one GPU, in groups, and what those
 * groups held when the most was allocated. A new peak costs nothing, however
 * many blocks are live. */
#ifndef MEMSIM_MEMSIM_TRACKER_H
#define MEMSIM_MEMSIM_TRACKER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/map.h"
#include "memsim/attribution/label.h"

#define PEAK_LABEL_BYTES 96

/* One kind of thing in memory at the peak. */
struct peak_thing {
    char label[PEAK_LABEL_BYTES];
    uint64_t bytes; /* of all of them */
    uint64_t count; /* 0: not made of blocks */
    const char *category;           /* NULL: not known; then nor is the rest */
    char module[PEAK_LABEL_BYTES];  /* "layers.*.mlp"; "": none */
    char operation[PEAK_LABEL_BYTES]; /* that allocated them; "": not known */
    char where[PEAK_LABEL_BYTES];     /* "train.py:31"; "": not recorded */
};

/* Zeroed, it is empty. */
struct tracker {
    struct map groups;
    size_t group_count;
    size_t sweep_at; /* groups, when to look for empty ones */
    uint64_t peaks;  /* how often the peak was raised */
    uint64_t current_bytes, peak_bytes;
};

struct block {
    uint64_t address; /* for the caller */
    uint64_t requested_bytes;
    uint64_t born; /* the tracker's `peaks` before it was counted */
    struct tracker *tracker;
    struct group *group;
    struct block *next, **previous; /* of those that nothing has used yet */
};

/* A new block, which nothing has used yet and which is in no list. */
struct block *tracker_add(struct tracker *t, uint64_t bytes,
                          uint64_t requested_bytes);

/* What is live now is what was live when PEAK_BYTES were. */
void tracker_raise(struct tracker *t, uint64_t peak_bytes);

/* Moves B to LABEL's group, now and, where it was live then, at the peak. */
void block_label(struct block *b, const struct label *label);

/* Puts B at the head of LIST; takes it out of the one it is in, if any. */
void block_wait(struct block *b, struct block **list);
void block_wait_end(struct block *b);

/* Ends B, which is freed. */
void block_drop(struct block *b);

/* What was live at the peak, by label and size, largest first, those that read
 * alike being one. The caller frees *THINGS. Returns how many. */
size_t tracker_things(const struct tracker *t, const struct trace_names *names,
                      struct peak_thing **things);

/* The order of things, largest first, for qsort. */
int thing_compare(const void *x, const void *y);

/* Forgets the groups; the blocks are the caller's to free. */
void tracker_fini(struct tracker *t);

#endif
