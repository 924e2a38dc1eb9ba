/* SPDX-License-Identifier: Apache-2.0
 * What would take less memory: each thing is asked of the recording, by
 * replaying it changed; nothing is advised that was not computed. */
#ifndef MEMSIM_MEMSIM_ADVICE_ADVICE_H
#define MEMSIM_MEMSIM_ADVICE_ADVICE_H

#include <cjson/cJSON.h>

#include "memsim/advice/tape.h"
#include "memsim/replay/recording.h"
#include "memsim/result/result.h"

/* How much memory a GPU has that is to be without a limit. */
#define ADVICE_UNLIMITED_BYTES (UINT64_C(1) << 40)

/* Which peak a saving is of. */
enum advice_peak { ADVICE_ALLOCATED, ADVICE_RESERVED, ADVICE_USED };

struct advice_row {
    char *what;    /* "activation checkpointing of blocks" */
    char *command; /* that shows it */
    char *basis;   /* what was replayed, and assumed */
    const char *how;          /* to change in the script; a literal, or NULL */
    cJSON *edits;             /* that make it; NULL: not known */
    const char *time_unknown; /* why its time is; likewise */
    char *again;     /* lists whose forward runs again, as "A+B"; or NULL */
    enum advice_peak peak;
    bool fits; /* on the GPU */
    struct replay_result result;
};

/* All that was asked of one process's recording. */
struct advice {
    bool fits; /* as it is */
    bool ends; /* the recording, at a request that failed: there is advice only
                  that would have met it */
    struct replay_result now; /* on a GPU that it fits on */
    struct advice_row *rows;
    size_t count;
};

struct advice_options {
    const char *name;      /* of the recording, as commands have it */
    uint64_t memory_bytes; /* of the GPU */
    const char *gpu;       /* options that name it, " --gpu l4", for commands
                              on a recording of another one; "" */
    bool settings_only;    /* ask only for other settings of the allocator */
    struct tape_notes *notes; /* of its trace, used up; NULL: it is read */
};

/* Asks REC, which was opened and is used. Returns 0 with *ADVICE to be given to
 * advice_fini, or -1. */
int advice_make(struct advice *advice, struct recording *rec,
                const struct advice_options *options, struct err *err);
void advice_fini(struct advice *advice);

/* Adds to *TO what saves more than one per cent of the peak on DEVICE, of the
 * process's numbering, the one that leaves least used first. */
void advice_tell(const struct advice *advice, unsigned device,
                 struct result_device *to);

#endif
