/* SPDX-License-Identifier: Apache-2.0
 * How many samples and tokens a step works on, from the arguments of the
 * modules that no other module calls. */
#ifndef MEMSIM_COMMON_TRACE_STEP_BATCH_H
#define MEMSIM_COMMON_TRACE_STEP_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/trace.h"

#define STEP_BATCH_MODULES 4
#define STEP_TEXT_GROWS    3 /* calls that grow by a token show a text */

/* What a call was given. */
struct step_call {
    uint64_t samples;
    uint64_t tokens; /* of each sample; 0: not known */
    uint64_t values; /* the most numbers of a tensor, of each sample */
    uint64_t batch_tokens, batch_values; /* of all samples, padding included */
};

/* What a step's modules were given. Zeroed: nothing. */
struct step_batch {
    struct step_batch_module {
        uint64_t module;          /* its number in the trace */
        bool learns;              /* gradients were recorded */
        uint64_t samples, tokens; /* of all calls; tokens 0: not known */
        uint32_t calls;
        bool generates; /* each call makes a token of each sample */
        uint64_t last;  /* tokens of the last call */
        uint32_t grown; /* calls that had a token more of each sample */
        struct step_call most; /* of all calls, each by itself */
    } modules[STEP_BATCH_MODULES];
    unsigned count;
    bool unclear; /* more modules than that */
};

void step_batch_add(struct step_batch *b, const struct trace_batch *record);

/* All that FROM has was given again, as by a graph that is launched. */
void step_batch_repeat(struct step_batch *b, const struct step_batch *from);

/* What a step works on; zeros: not known. */
struct step_input {
    uint64_t module; /* whose arguments say so */
    uint64_t samples, tokens;
    uint32_t calls;
    bool generates; /* TOKENS are new ones: one of each sample and call */
    struct step_call most; /* of all calls, each by itself */
};

/* Adds MORE, what the next call was given, to SUM, which has a call or more.
 * Beside a module that generates text, others, such as an encoder, do not
 * count. */
void step_input_add(struct step_input *sum, const struct step_input *more);

/* Whether MORE, one call, was given a token more of each sample than BEFORE,
 * another: the text so far, where nothing of it is kept. */
bool step_input_grows(const struct step_input *before,
                      const struct step_input *more);

/* What INPUT is, one call that was given the text so far. */
void step_input_generate(struct step_input *input);

/* Calls that record gradients count; where there are none, those of modules
 * that generate text, or else all. All modules must have got as many samples,
 * otherwise nothing is known. */
struct step_input step_batch_input(const struct step_batch *b);

#endif
