/* SPDX-License-Identifier: Apache-2.0
 * What could be changed about a program, and a recording so changed. */
#ifndef MEMSIM_MEMSIM_ADVICE_CHANGE_H
#define MEMSIM_MEMSIM_ADVICE_CHANGE_H

#include "memsim/advice/tape_cast.h"
#include "memsim/advice/tape_change.h"
#include "memsim/advice/tape_fsdp.h"
#include "memsim/advice/tape_gradient.h"
#include "memsim/advice/tape_idle.h"
#include "memsim/advice/tape_kept.h"
#include "memsim/advice/tape_loss.h"
#include "memsim/advice/tape_state.h"
#include "memsim/replay/recording.h"

/* A recording that can be changed. Its parts are borrowed by what is made of
 * it. */
struct changeable {
    struct tape tape;
    struct module_lists lists;
};

struct change {
    struct state_change state;
    unsigned loss_chunks; /* 0 or 1: the loss is as it is */
    bool free_gradients;  /* zero_grad(set_to_none=True) */
    bool uncached_casts;  /* autocast(cache_enabled=False) */
    bool no_grad;         /* in evaluation */
    bool kept_on_cpu;     /* what lists keep of each call of a model */
    unsigned fsdp;        /* ranks; 0 or 1: no change */
    bool *checkpoint;     /* of each list; NULL: none */
};

/* What a change came to. */
struct change_effect {
    struct state_effect state;
    uint64_t loss_bytes; /* that the loss takes no more */
    uint64_t gradient_bytes; /* freed by zero_grad() */
    uint64_t cast_bytes;     /* of copies of weights, freed earlier */
    uint64_t idle_bytes;     /* of evaluations, freed earlier */
    uint64_t kept_bytes;     /* of lists, freed earlier */
    uint64_t fsdp_bytes;     /* of parameters that other ranks keep */
    size_t forwards;      /* under checkpointing */
};

int changeable_read(struct changeable *c, const char *path,
                    const struct replay_source *source, struct err *err);
/* The same of NOTES of the trace, which are used up. */
int changeable_make(struct changeable *c, struct tape_notes *notes,
                    const struct replay_source *source, struct err *err);
void changeable_fini(struct changeable *c);

/* Reads "checkpoint=LIST[+LIST]...", "bf16-optimizer", "8bit-optimizer",
 * "fused-optimizer", "shard-optimizer=N", "chunked-loss=N", "set-to-none",
 * "no-autocast-cache", "no-grad", "kept-on-cpu", "fsdp=N", with commas between
 * them. Returns 0 with *CHANGE to be given to change_fini, or -1. */
int change_parse(struct change *change, const char *text,
                 const struct changeable *c, struct err *err);
void change_fini(struct change *change);

/* The same as text, which the caller frees. */
char *change_text(const struct change *change, const struct changeable *c);

/* The lists that CHANGE puts under checkpointing, as "A+B", which the caller
 * frees; NULL: none. */
char *change_lists_text(const struct change *change,
                        const struct changeable *c);

/* The most that a change has. */
#define CHANGE_PARTS 16

/* Splits CHANGE into PARTS, each one alone, which borrow its lists. Returns how
 * many there are. */
size_t change_parts(const struct change *change,
                    struct change parts[CHANGE_PARTS]);

/* Why a recording does not say what a step takes with CHANGE; NULL: it does, or
 * CHANGE is activation checkpointing alone. */
const char *change_time_unknown(const struct change *change);

/* Makes *TO what C would be with CHANGE. */
struct change_effect change_make(struct tape *to, const struct changeable *c,
                                 const struct change *change);

/* A recording that is played as if the program had been changed. Zeroed, it
 * is none. */
struct changed {
    struct changeable from;
    struct change change;
    struct tape tape;
};

/* From now on R is what it would be with the change that TEXT says, see
 * change_parse; R borrows *C, which must outlive it. Returns 0, or -1 with
 * nothing to free. */
int changed_apply(struct changed *c, struct recording *r, const char *text,
                  struct err *err);
void changed_fini(struct changed *c);

#endif
