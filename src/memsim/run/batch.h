/* SPDX-License-Identifier: Apache-2.0
 * The runs of `memsim fit-batch`: a command with a batch in place of {}, and
 * its outcome. */
#ifndef MEMSIM_MEMSIM_RUN_BATCH_H
#define MEMSIM_MEMSIM_RUN_BATCH_H

#include <stdbool.h>
#include <stdint.h>

enum batch_verdict {
    BATCH_FITS,
    BATCH_OOM,
    BATCH_CAUGHT, /* out of memory, but the command continued */
    BATCH_OVER_LIMIT,
    BATCH_GROWS, /* it fits at first, but not to the job's end */
    BATCH_FAILED, /* for another reason: the verdict is not known */
    BATCH_NONE,   /* no GPU was used */
    BATCH_TIMEOUT, /* it was ended: the verdict is not known */
};

/* One run. The figures are those of its fullest GPU. */
struct batch_outcome {
    uint64_t batch;
    enum batch_verdict verdict;
    int status; /* the command's exit status */
    uint64_t peak_used_bytes, peak_reserved_bytes, peak_allocated_bytes;
    uint64_t step_ns, low_ns, high_ns; /* predicted; 0: not known */
    double rate; /* tokens or samples a second, of one rank; 0: not known */
    bool rate_is_tokens, waits_for_cpu;
    uint64_t lasts_steps; /* where memory grows, at least; 0: it does not */
    double seconds; /* duration of that run */
    bool cached;
};

/* Says of OUTCOME, of a run that was ended because its time was over, that
 * nothing more is known; out of memory it stays. */
void batch_outcome_late(struct batch_outcome *outcome);

/* Whether a run of that verdict says nothing of larger and smaller batches. */
bool batch_verdict_ends(enum batch_verdict verdict);

/* The text for reports. */
const char *batch_verdict_text(enum batch_verdict verdict);

/* "fits", "oom", "caught-oom", "over-limit", "grows", "failed", "none",
 * "timeout": the name in the JSON. */
const char *batch_verdict_name(enum batch_verdict verdict);

/* The name's verdict; -1: there is none of that name. */
int batch_verdict_find(const char *name);

/* COMMAND with BATCH in place of each {}. The caller frees it and each of its
 * strings, by batch_command_free. */
char **batch_command(char *const *command, uint64_t batch);
void batch_command_free(char **command);

/* Whether COMMAND has a {}. */
bool batch_command_has_place(char *const *command);

#endif
