/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/episode.h"

#include <string.h>

static const char *const names[EPISODE_COUNT] = {
    [EPISODE_EVALUATION] = "evaluation",
    [EPISODE_GENERATION] = "generation",
    [EPISODE_SAVING] = "saving",
    [EPISODE_LOADING] = "loading",
};

const char *episode_name(enum episode episode)
{
    return names[episode];
}

/* The episode that ITEM's text names. */
static enum episode episode_read(const struct trace_item *item)
{
    size_t start = sizeof EPISODE_TEXT - 1, length = item->head.text_bytes;

    if (length < start || memcmp(item->text, EPISODE_TEXT, start))
        return EPISODE_NONE;
    for (int i = 1; i < EPISODE_COUNT; i++)
        if (strlen(names[i]) == length - start &&
            !memcmp(item->text + start, names[i], length - start))
            return (enum episode)i;
    return EPISODE_NONE;
}

static bool is_trained(const struct episode_tracker *t, uint32_t module)
{
    for (unsigned i = 0; i < t->trained_count; i++)
        if (t->trained[i] == module)
            return true;
    return false;
}

static void take_batch(struct episode_tracker *t,
                       const struct trace_batch *batch)
{
    uint32_t module = (uint32_t)batch->module;
    bool learns = batch->learns == TRACE_LEARNS;

    t->now.module = learns ? 0 : module;
    if (learns && t->trained_count < EPISODE_MODULES && !is_trained(t, module))
        t->trained[t->trained_count++] = module;
}

void episode_take(struct episode_tracker *t, const struct trace_item *item)
{
    if (item->head.kind == TRACE_BATCH) {
        take_batch(t, trace_as_batch(item));
    } else if (item->head.kind == TRACE_PHASE) {
        if (trace_as_phase(item)->phase != TRACE_PHASE_FORWARD)
            t->now.module = 0;
    } else if (item->head.kind == TRACE_RANGE_PUSH) {
        enum episode begins = episode_read(item);
        if (begins != EPISODE_NONE) {
            t->now.told = begins;
            t->domain = trace_as_range_push(item)->domain;
        }
    } else if (item->head.kind == TRACE_RANGE_POP &&
               t->now.told != EPISODE_NONE &&
               trace_as_range_pop(item)->domain == t->domain) {
        t->now.told = EPISODE_NONE;
    }
}

enum episode episode_of(const struct episode_tracker *t,
                        struct episode_moment moment)
{
    if (moment.told != EPISODE_NONE)
        return moment.told;
    return moment.module && is_trained(t, moment.module) ? EPISODE_EVALUATION
                                                         : EPISODE_NONE;
}
