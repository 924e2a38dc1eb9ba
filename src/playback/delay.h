/* SPDX-License-Identifier: Apache-2.0
 * What a job's times would be if calls came later: the table of --delay, and
 * the one rule that says which delay a call gets. The report's simulation, the
 * clock of a program that runs and emulation ask it the same, so all of them
 * get the same. Pure: equal tables and calls give equal delays.
 *
 * An entry is WHAT=AMOUNT and conditions, with commas between; entries have
 * semicolons between:
 *
 *     ncclAllReduce=2ms,rank=3,every=10,jitter=20%,from-step=5
 *     link=2x,node=1;host=5ms;die=7,rank=3
 */
#ifndef MEMSIM_PLAYBACK_DELAY_H
#define MEMSIM_PLAYBACK_DELAY_H

#include "common/base/rank_set.h"
#include "common/trace/op.h"
#include "common/trace/op_trace.h"
#include "runtime/sim/sim.h"

#define DELAYS_MAX  16
#define DELAY_ANY   UINT32_MAX
#define DELAY_NEVER UINT32_MAX
#define DELAY_PATH  512 /* of --delay-lib, with its end */

enum delay_kind {
    DELAY_CALL, /* operations with NAME in theirs */
    DELAY_LINK, /* "link": collectives and messages between nodes */
    DELAY_GPU,  /* "gpu": all of a GPU's own work */
    DELAY_HOST, /* "host": the host, as each step begins */
    DELAY_DEATH, /* "die=STEP": the rank ends there */
};

struct delay {
    enum delay_kind kind;
    char name[96];
    uint64_t ns;   /* so much later; or else ... */
    double factor; /* ... so many times as long, at least 1; 0: ns */
    double jitter; /* 0.2: 20% more or less of what is added */
    uint64_t seed; /* of the jitter */
    uint32_t rank, node; /* DELAY_ANY: all */
    uint32_t every;      /* such a call of a rank; 1: each */
    uint32_t from_step, to_step; /* counted from 0, both inclusive; of
                                    DELAY_DEATH: the first one is its step */
};

struct memsim_delay_call;
struct delay_ranks;

/* Zeroed, there are none. */
struct delays {
    struct delay all[DELAYS_MAX];
    uint32_t count;
    char library[DELAY_PATH]; /* of --delay-lib, absolute; "": none */
};

/* Reads entries, as above, into *D behind those that it has; "none" is none.
 * Returns 0, or -1 with ERR set. */
int delays_parse(const char *text, struct delays *d, struct err *err);

/* Whether D has an entry of KIND. */
bool delays_have(const struct delays *d, enum delay_kind kind);

/* Whether what D does depends on steps. */
bool delays_need_steps(const struct delays *d);

/* The ranks that a process stands for. */
struct delay_ranks {
    uint32_t rank;           /* its own */
    struct rank_set members; /* with it; none: it stands for itself */
    uint32_t local; /* ranks of a node, which they fill in order; 0: not known,
                       all are on node 0 */
};

/* What a function of --delay-lib (memsim_delay.h) answers for CALL: the most of
 * all ranks of RANKS. It sets what CALL says of the rank. */
typedef uint64_t delay_function(struct memsim_delay_call *call,
                                const struct delay_ranks *ranks);

/* What one process has called so far. */
struct delay_state {
    const struct delays *delays; /* borrowed */
    const struct delay_ranks *ranks; /* borrowed; may be filled in later */
    delay_function *library;     /* NULL: there is none */
    uint64_t calls[DELAYS_MAX];  /* that an entry is about */
    uint64_t hits[DELAYS_MAX];   /* that it delayed */
    uint64_t added_ns[DELAYS_MAX];
    uint64_t library_calls;
};

/* A call, as the rule sees it. */
struct delay_call {
    const char *name; /* as recorded */
    enum op_kind kind;
    enum sim_engine engine;
    enum sim_link link; /* of a collective */
    uint64_t duration_ns, bytes;
    uint32_t ranks; /* of a collective's communicator */
    uint32_t step;
};

/* It starts LATE_NS later than it could, and takes FACTOR times as long. */
struct delay_effect {
    uint64_t late_ns;
    double factor;
};

/* What CALL, the next one of S, gets. A collective's factor is in LATE_NS: the
 * others wait for it. A process that stands for several ranks gets the largest
 * delay of them. */
struct delay_effect delay_of(struct delay_state *s,
                             const struct delay_call *call);

/* How much later the host comes to STEP, which begins. */
uint64_t delay_of_step(struct delay_state *s, uint32_t step);

/* The rank that dies as STEP begins, of those that S stands for; DELAY_ANY:
 * none does. */
uint32_t delay_death(const struct delay_state *s, uint32_t step);

/* WHAT=AMOUNT of D, for notes; in OUT of SIZE bytes, which is returned. */
char *delay_text(const struct delay *d, char *out, size_t size);

#endif
