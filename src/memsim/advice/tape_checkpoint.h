/* SPDX-License-Identifier: Apache-2.0
 * What tape_checkpoint's two halves share: tape_forwards.c finds the members'
 * forwards in a recording, tape_change.c makes them again. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_CHECKPOINT_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_CHECKPOINT_H

#include "memsim/advice/module_list.h"
#include "memsim/advice/tape.h"

#define NONE TAPE_NONE

/* What becomes of a block that a member's forward took. */
enum fate {
    FATE_BRIEF,  /* forward gave it back: made again with the others */
    FATE_NEEDED, /* by backward: given back, and made again */
    FATE_CAST,   /* likewise, but autocast holds it until its end */
    FATE_CACHED, /* autocast holds it, backward does not need it */
    FATE_RESULT, /* what the member returns, and others need in backward */
    FATE_PASSED, /* what it returns, and only it needs: NEEDED once used */
    FATE_KEPT,   /* anything else: parameters, workspaces */
};

/* A member's forward, from its call to its end. */
struct forward {
    uint32_t member;
    uint32_t enter, leave; /* items */
    uint32_t before;       /* the member's forward before it, or NONE */
    uint32_t backward;     /* where that begins, as recorded, or NONE */
    uint32_t needed;       /* blocks that backward has still to free */
    uint32_t arguments;    /* blocks to be freed when backward is done with
                              it, or NONE; more: struct block's next */
    bool is_last;          /* of the members, before backward */
    bool again;            /* its recomputation was made */
};

struct block { /* of the item that takes it */
    uint32_t freed, forward;
    uint32_t next;
    uint64_t name; /* 0: the recorded address */
    bool gone;     /* given back, and not made again yet */
};

struct checkpoint {
    const struct tape *from;
    struct tape *to;
    const struct module_lists *lists;
    const bool *chosen;
    uint32_t *taken_at; /* of an item that frees: the item that took it */
    struct block *blocks;
    uint8_t *phases;    /* of the program at each item */
    bool *autocast_end; /* at this item */
    struct forward *forwards;
    size_t forward_count, forward_capacity;
    uint32_t *open, *pending, *active; /* forwards, by member */
    struct held {
        uint32_t *items;
        size_t count, capacity;
    } casts, passed; /* autocast holds them; until the next member is called */
    struct map parameters; /* by module and size */
    uint64_t next_name;
};

/* Is a block of FATE made again for backward? */
static inline bool fate_is_needed(enum fate fate)
{
    return fate == FATE_NEEDED || fate == FATE_CAST || fate == FATE_PASSED;
}

/* The chosen member that MODULE is in, or 0. */
uint32_t checkpoint_member(const struct checkpoint *c, uint32_t module);

/* What becomes of the block that item I took, in forward F. */
enum fate checkpoint_fate(const struct checkpoint *c, uint32_t i,
                          const struct forward *f);

/* Fills in all that C is to know of its recording. */
void checkpoint_read(struct checkpoint *c);

#endif
