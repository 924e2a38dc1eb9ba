/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/step_batch.h"

static void raise_to(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

/* The largest of each; tokens are known if those of all calls are. */
static void call_raise(struct step_call *most, const struct step_call *call)
{
    bool tokens = most->tokens && call->tokens;

    raise_to(&most->samples, call->samples);
    raise_to(&most->tokens, call->tokens);
    raise_to(&most->values, call->values);
    raise_to(&most->batch_tokens, call->batch_tokens);
    raise_to(&most->batch_values, call->batch_values);
    if (!tokens)
        most->tokens = most->batch_tokens = 0;
}

static void add(struct step_batch *b, const struct step_batch_module *more)
{
    unsigned i = 0;

    while (i < b->count && (b->modules[i].module != more->module ||
                            b->modules[i].learns != more->learns))
        i++;
    if (i == STEP_BATCH_MODULES) {
        b->unclear = true;
        return;
    }
    struct step_batch_module *m = &b->modules[i];
    if (i == b->count) {
        b->count++;
        *m = *more;
        return;
    }
    if (!more->tokens || !m->tokens)
        m->tokens = 0;
    else
        m->tokens += more->tokens;
    m->samples += more->samples;
    m->calls += more->calls;
    call_raise(&m->most, &more->most);
}

/* Tokens that samples do not share evenly are of none of them. */
static struct step_call call_of(const struct trace_batch *r)
{
    bool even = r->samples && r->tokens % r->samples == 0;

    return (struct step_call){
        .samples = r->samples,
        .tokens = even ? r->tokens / r->samples : 0,
        .values = r->values,
        .batch_tokens = even ? r->tokens : 0,
        .batch_values = r->values * r->samples,
    };
}

void step_batch_add(struct step_batch *b, const struct trace_batch *record)
{
    add(b, &(struct step_batch_module){.module = record->module,
                                       .learns = record->learns,
                                       .samples = record->samples,
                                       .tokens = record->tokens,
                                       .most = call_of(record),
                                       .calls = 1});
}

void step_batch_repeat(struct step_batch *b, const struct step_batch *from)
{
    for (unsigned i = 0; i < from->count; i++)
        add(b, &from->modules[i]);
    b->unclear = b->unclear || from->unclear;
}

static bool learns(const struct step_batch *b)
{
    for (unsigned i = 0; i < b->count; i++)
        if (b->modules[i].learns)
            return true;
    return false;
}

struct step_input step_batch_input(const struct step_batch *b)
{
    struct step_input input = {.module = 0};
    bool only_learning = learns(b);

    if (b->unclear)
        return input;
    for (unsigned i = 0; i < b->count; i++) {
        const struct step_batch_module *m = &b->modules[i];
        if (only_learning && !m->learns)
            continue;
        if (!input.module)
            input = (struct step_input){.module = m->module,
                                        .samples = m->samples,
                                        .tokens = m->tokens,
                                        .calls = m->calls,
                                        .most = m->most};
        if (m->samples != input.samples)
            return (struct step_input){.module = 0};
        if (m->tokens != input.tokens)
            input.tokens = 0;
        call_raise(&input.most, &m->most);
    }
    return input;
}
