/* SPDX-License-Identifier: Apache-2.0
 * Declarations that replay_repeat.c and replay_scale.c share. */
#ifndef MEMSIM_MEMSIM_REPLAY_REPLAY_REPEAT_INTERNAL_H
#define MEMSIM_MEMSIM_REPLAY_REPLAY_REPEAT_INTERNAL_H

#include "memsim/replay/replay_repeat.h"

struct call {
    struct replay_op op;
    size_t taken; /* of a free: the place of the block's allocation ... */
    bool before;  /* ... in the repetition before this one */
};

struct call_list {
    struct call *all;
    size_t count, capacity;
};

struct replay_repeat {
    const struct replay_source *from;
    struct replay_source source;
    uint64_t begins[REPLAY_REPEAT_BEGINS];
    size_t begin_count;
    struct call_list calls; /* of the steps that are repeated */
    size_t steps;           /* so many */
    uint64_t end;           /* where the recording is left */
    uint64_t most, at;      /* calls to repeat, and that were */
};

/* A repetition of SOURCE that has no calls yet; replay_repeat.h explains the
 * arguments. */
struct replay_repeat *repeat_make(const struct replay_source *source,
                                  const uint64_t *begins, size_t count,
                                  uint64_t most);

bool call_takes(const struct replay_op *op);

/* The calls of the steps from the first of R's begins on. */
int calls_read(const struct replay_repeat *r, struct call_list *calls,
               struct err *err);

/* The place of the first call of the step that is BACK steps from the end. */
size_t calls_step(const struct replay_repeat *r, const struct call_list *calls,
                  size_t back);

/* Whether the calls from MIDDLE on ask for what those from FIRST to END do;
 * without SIZES the bytes may differ. */
bool calls_alike(const struct call_list *calls, size_t first, size_t end,
                 size_t middle, bool sizes);

/* R's calls become those from MIDDLE on; those before it, from FIRST on, are
 * alike. */
bool calls_choose(struct replay_repeat *r, const struct call_list *all,
                  size_t first, size_t middle);

#endif
