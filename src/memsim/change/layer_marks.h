/* SPDX-License-Identifier: Apache-2.0
 * The operations of a recording, with marks that are equal where operations
 * are, and the segments of its steps. */
#ifndef MEMSIM_MEMSIM_CHANGE_LAYER_MARKS_H
#define MEMSIM_MEMSIM_CHANGE_LAYER_MARKS_H

#include "memsim/change/records.h"

enum segment_kind {
    SEGMENT_NONE, /* before any module was called */
    SEGMENT_FORWARD,
    SEGMENT_BACKWARD, /* with what it computes again */
    SEGMENT_AFTER,    /* the optimizer and what comes before and behind it */
    SEGMENT_WHOLE,    /* of a profile, which has no phases */
};

struct segment {
    enum segment_kind kind;
    uint32_t step;
    bool warm_up;
    size_t first, end;  /* operations */
    size_t from, until; /* records */
};

struct layer_marks {
    size_t *ops;     /* records, in order */
    uint64_t *marks; /* of each */
    size_t count, capacity, marks_capacity;
    struct segment *segments;
    size_t segment_count, segment_capacity;
};

void layer_marks_make(struct layer_marks *m, const struct records *r);
void layer_marks_fini(struct layer_marks *m);

/* The first record behind operation OP - 1 of R that does not belong to it;
 * marks of a profile's gradients do. OP is not 0. */
size_t layer_marks_behind(const struct layer_marks *m, const struct records *r,
                          size_t op);

/* The end of the operations from OP on that one thread launched, one behind the
 * other; END at most. */
size_t layer_run_end(const struct layer_marks *m, const struct records *r,
                     size_t op, size_t end);

/* Does operation OP of a profile work on a list of tensors, as an optimizer
 * does? */
bool layer_op_is_list(const struct layer_marks *m, const struct records *r,
                      size_t op);

/* The layers of a profile, by the repetition in the longest part of a step that
 * one thread launched, a forward or a backward; 0: nothing repeats. */
uint32_t layer_marks_guess(const struct layer_marks *m,
                           const struct records *r);

#endif
