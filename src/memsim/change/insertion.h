/* SPDX-License-Identifier: Apache-2.0
 * Records that are put into a trace at one place, as its thread's: in place of
 * a record (a mark), before or behind it. What comes behind is later by what
 * the host takes for them. */
#ifndef MEMSIM_MEMSIM_CHANGE_INSERTION_H
#define MEMSIM_MEMSIM_CHANGE_INSERTION_H

#include "common/base/range.h"
#include "memsim/change/rewrite.h"

/* What a call of each costs the host: a launch by an operator, another one. */
#define INSERTION_LAUNCH_NS 6000
#define INSERTION_CALL_NS   1000

struct insertion {
    struct records *records;
    size_t at;
    struct edit edit; /* for rewrite_add, once all is put */
};

/* In place of record AT. */
struct insertion insertion_at(struct records *r, size_t at);

/* Puts a record with COUNT WORDS and a TEXT of BYTES; HOST_NS: what the host
 * takes for it. */
struct insertion_record {
    enum trace_kind kind;
    const uint64_t *words;
    size_t count;
    const char *text;
    size_t bytes;
    uint64_t host_ns;
};
void insertion_put(struct insertion *g, const struct insertion_record *record);

/* A record of TRACE_KIND; the fields follow. */
#define INSERTION_PUT(g, ns, kind, ...)                                        \
    insertion_put(g, &(struct insertion_record){                               \
                         TRACE_##kind, TRACE_WORDS(kind, __VA_ARGS__),         \
                         TRACE_WORD_COUNT(kind), "", 0, ns})

/* The record at the place itself: what is put before is before it. */
void insertion_keep(struct insertion *g);

/* The first id that no name of R has. */
uint32_t insertion_names(const struct records *r);

/* TEXT as the name ID. */
void insertion_name(struct insertion *g, uint32_t id, const char *text);

/* A communicator of the ranks MEMBERS, with an id of its own by NUMBER. */
void insertion_communicator(struct insertion *g, uint64_t handle,
                            uint32_t number, const struct range *members);

/* A kernel's launch on a stream, with INSERTION_LAUNCH_NS. */
struct insertion_kernel {
    uint32_t name;
    uint64_t stream;
    uint64_t blocks, rows; /* of the grid */
    uint32_t threads;      /* of a block */
    enum trace_rule rule;
    uint64_t a, b, c, d;
};
void insertion_launch(struct insertion *g, const struct insertion_kernel *k);

/* The same of a kernel of PyTorch's that reads and writes each of ELEMENTS, of
 * EACH bytes. */
struct insertion_elements {
    uint32_t name;
    uint64_t stream, elements, each;
};
void insertion_elementwise(struct insertion *g,
                           const struct insertion_elements *e);

#endif
