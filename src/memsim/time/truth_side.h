/* SPDX-License-Identifier: Apache-2.0
 * What one side of `memsim diff --truth' did: an estimate, or the same script
 * on a real GPU. */
#ifndef MEMSIM_MEMSIM_TIME_TRUTH_SIDE_H
#define MEMSIM_MEMSIM_TIME_TRUTH_SIDE_H

#include <stdbool.h>

#include "common/base/map.h"
#include "playback/price.h"

/* A block that PyTorch's allocator gave, or took back. */
struct truth_event {
    bool is_free;
    uint64_t address;
    uint64_t requested_bytes, block_bytes; /* requested: 0 of a free */
    uint32_t operator, module;             /* ids of names; 0: not known */
};

/* Kernels and library calls of one name. */
struct truth_work {
    const char *name; /* as the trace has it */
    enum work_family family;
    uint64_t count;
    uint64_t grid_x_y, grid_z; /* of the last launch */
    bool grids;                /* several */
    double ns; /* of all: as measured, or as priced */
};

/* A convolution by its shape, with what cuDNN asked for the last time. */
struct truth_convolution {
    uint64_t key;       /* common/trace/convolution_key.h */
    uint64_t operation; /* of the record */
    char *text;         /* the record's, without what is of the engine */
    uint64_t workspace_bytes;
};

struct truth_side {
    struct truth_event *events;
    size_t event_count, event_capacity;
    struct truth_work *works; /* in no order */
    size_t work_count, work_capacity;
    struct truth_convolution *convolutions; /* as they come */
    size_t convolution_count, convolution_capacity;
    struct map by_shape; /* index + 1 in convolutions, by key */
    double family_ns[WORK_FAMILIES];
    uint64_t family_count[WORK_FAMILIES];
    bool measured; /* it has the times of a GPU */
    struct trace_names names;
    struct map modules; /* ids of names of modules, by id + 1 */
    struct map by_name; /* index + 1 in works, by a hash of the name */
};

/* Reads the trace PATH; what was not measured is priced by OPTIONS. Returns 0
 * with *SIDE to be given to truth_side_fini, or -1 with ERR set. */
int truth_side_read(struct truth_side *side, const char *path,
                    const struct price_options *options, struct err *err);
void truth_side_fini(struct truth_side *side);

/* The work called NAME; NULL: none is. */
const struct truth_work *truth_work_of(const struct truth_side *side,
                                       const char *name);

/* The convolution with KEY; NULL: there is none. */
const struct truth_convolution *
truth_convolution_of(const struct truth_side *side, uint64_t key);

/* The sizes and the stride in TEXT, a record's of cuDNN's, as " x=8,3,224,224
 * w=...", into TO, which has SIZE bytes. */
void truth_shape(const char *text, size_t bytes, char *to, size_t size);

/* The names of an event's operator and module; "": not known. */
const char *truth_operator(const struct truth_side *side,
                           const struct truth_event *e);
const char *truth_module(const struct truth_side *side,
                         const struct truth_event *e);

enum { TRUTH_PASSES = 3 };

/* What a convolution's OPERATION, the record's, is called. */
const char *truth_pass(uint64_t operation);

#endif
