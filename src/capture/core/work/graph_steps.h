/* SPDX-License-Identifier: Apache-2.0
 * The visible effects of a launched graph, in order: copies, sets, calls of
 * host functions, the kernels of compute.h with their arguments, and memory
 * that PyTorch newly allocated while it captured. Steps are
 * collected while a graph is made; a plan of them, without what has no effect,
 * is made when the graph is instantiated, and run by each launch. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_GRAPH_STEPS_H
#define MEMSIM_CAPTURE_CORE_WORK_GRAPH_STEPS_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/core/base/core.h"

struct kernel;
struct kernel_launch;

#define STEP_WORDS 4

enum step_kind {
    STEP_FORGET, /* address, bytes: nothing is known of it from here on */
    STEP_FRESH,  /* the same, as it was handed out anew: no node's */
    STEP_COPY,   /* destination, source, bytes */
    STEP_SET,    /* address, value, unit, count */
    STEP_HOST,   /* function, data */
    STEP_EVENT,  /* an event, to be recorded */
    STEP_CHILD,  /* a struct graph_body, of which this holds a reference */
    STEP_KERNEL, /* a struct kernel_step, and where it writes */
    STEP_GIVE,   /* an address that a struct kernel is given */
    STEP_NODE,   /* the place of a node's steps */
};

struct step {
    struct step *next;
    enum step_kind kind;
    uint32_t node;  /* 1 and up, in the order of the body's; 0: none's */
    uint32_t lives; /* bit i: words[i] was memory of the program's */
    uint64_t words[STEP_WORDS];
};

struct step_chunk;

struct graph_steps {
    struct step *first, *last, *claimed;
    struct step_chunk *chunks;
    uint64_t argument_bytes; /* kept for kernels */
    uint32_t count;
};

/* Without room, or with too many bytes of kernels' arguments already, what a
 * kernel writes is forgotten instead. */
void graph_steps_add(struct graph_steps *steps, enum step_kind kind,
                     const uint64_t words[STEP_WORDS]);
void graph_steps_kernel(struct graph_steps *steps, const struct kernel *kernel,
                        const struct kernel_launch *launch);
void graph_steps_copy(struct graph_steps *to, const struct graph_steps *from);
void graph_steps_fini(struct graph_steps *steps);

/* What was added since the last claim is what NODE does. */
void graph_steps_claim(struct graph_steps *steps, uint32_t node);

/* Of the memory that STEPS use, that which lives is marked so; and a later look
 * at what of it has been freed since, or is another GPU's: what DEVICE runs
 * fails there. */
void graph_steps_mark(struct graph_steps *steps);
void graph_steps_check(const struct graph_steps *steps, int device);

/* One thing to do; STEP is NULL for BYTES at ADDRESS to be forgotten. */
struct graph_action {
    const struct step *step;
    uint64_t address, bytes;
};

struct graph_plan {
    struct graph_action *actions;
    uint32_t count;
    uint64_t mapped_bytes;
};

struct graph_changes;

/* Of STEPS with CHANGES, which must outlive the plan, as far as they are of the
 * first NODES nodes. An empty plan where there is no room. */
void graph_plan_init(struct graph_plan *plan, const struct graph_steps *steps,
                     const struct graph_changes *changes, uint32_t nodes);
void graph_plan_fini(struct graph_plan *plan);

/* Does it, as work of STREAM. */
void graph_plan_run(const struct graph_plan *plan, uint64_t stream);

#endif
