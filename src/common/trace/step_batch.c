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

/* Text that is generated goes on with a token of each sample. */
static bool is_next_token(const struct step_batch_module *m)
{
    return m->learns != TRACE_LEARNS && m->calls == 1 && m->tokens &&
           m->tokens == m->samples;
}

/* Or, where a model keeps nothing of it, is given whole to the next call. */
static void module_grow(struct step_batch_module *m,
                        const struct step_batch_module *more)
{
    bool grows = m->learns != TRACE_LEARNS && more->calls == 1 && m->last &&
                 more->tokens == m->last + more->samples;

    m->grown += grows;
    m->last = more->last;
    m->generates = m->generates || is_next_token(more) ||
                   (m->grown >= STEP_TEXT_GROWS && 2 * m->grown > m->calls);
}

static void module_add(struct step_batch *b,
                       const struct step_batch_module *more)
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
        m->generates = is_next_token(more);
        return;
    }
    if (!more->tokens || !m->tokens)
        m->tokens = 0;
    else
        m->tokens += more->tokens;
    m->samples += more->samples;
    m->calls += more->calls;
    module_grow(m, more);
    call_raise(&m->most, &more->most);
}

/* What a module was given that generates text is the text so far, then a token
 * at a time; what it makes is a token of each sample and call. */
static uint64_t tokens_of(const struct step_batch_module *m)
{
    return m->generates ? m->samples : m->tokens;
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
    module_add(b, &(struct step_batch_module){.module = record->module,
                                              .learns = record->learns,
                                              .samples = record->samples,
                                              .tokens = record->tokens,
                                              .last = record->tokens,
                                              .most = call_of(record),
                                              .calls = 1});
}

void step_batch_repeat(struct step_batch *b, const struct step_batch *from)
{
    for (unsigned i = 0; i < from->count; i++)
        module_add(b, &from->modules[i]);
    b->unclear = b->unclear || from->unclear;
}

static bool batch_learns(const struct step_batch *b)
{
    for (unsigned i = 0; i < b->count; i++)
        if (b->modules[i].learns)
            return true;
    return false;
}

static bool batch_generates(const struct step_batch *b)
{
    for (unsigned i = 0; i < b->count; i++)
        if (b->modules[i].generates)
            return true;
    return false;
}

struct step_input step_batch_input(const struct step_batch *b)
{
    struct step_input input = {.module = 0};
    bool only_learning = batch_learns(b);
    bool only_text = !only_learning && batch_generates(b);

    if (b->unclear)
        return input;
    for (unsigned i = 0; i < b->count; i++) {
        const struct step_batch_module *m = &b->modules[i];
        if ((only_learning && !m->learns) || (only_text && !m->generates))
            continue;
        if (!input.module)
            input = (struct step_input){.module = m->module,
                                        .samples = m->samples,
                                        .tokens = tokens_of(m),
                                        .calls = m->calls,
                                        .generates = m->generates,
                                        .most = m->most};
        if (m->samples != input.samples)
            return (struct step_input){.module = 0};
        if (tokens_of(m) != input.tokens)
            input.tokens = 0;
        call_raise(&input.most, &m->most);
    }
    return input;
}

bool step_input_grows(const struct step_input *before,
                      const struct step_input *more)
{
    return before->module && before->module == more->module &&
           before->calls == 1 && more->calls == 1 && before->tokens &&
           before->samples == more->samples &&
           more->tokens == before->tokens + more->samples;
}

void step_input_generate(struct step_input *input)
{
    input->generates = true;
    input->tokens = input->samples;
}

/* MORE is another module's. */
static void add_other(struct step_input *sum, const struct step_input *more)
{
    if (sum->generates)
        return;
    if (more->generates) {
        *sum = *more;
        return;
    }
    if (more->samples * sum->calls != sum->samples * more->calls)
        *sum = (struct step_input){.module = 0};
    sum->tokens = 0;
}

void step_input_add(struct step_input *sum, const struct step_input *more)
{
    if (more->module != sum->module) {
        add_other(sum, more);
        return;
    }
    sum->generates = sum->generates || more->generates ||
                     (more->tokens && more->tokens == more->samples);
    sum->samples += more->samples;
    sum->calls += more->calls;
    call_raise(&sum->most, &more->most);
    if (sum->generates)
        sum->tokens = sum->samples;
    else
        sum->tokens = sum->tokens && more->tokens ? sum->tokens + more->tokens
                                                  : 0;
}
