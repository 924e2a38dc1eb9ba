/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/pipe_split.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/bisect.h"

#define LAYERS_MAX 4096

static bool read_number(const char **at, uint32_t most, uint32_t *number)
{
    char *end;
    unsigned long value =
        **at >= '0' && **at <= '9' ? strtoul(*at, &end, 10) : 0;

    if (!value || value > most)
        return false;
    *number = (uint32_t)value;
    *at = end;
    return true;
}

/* "3+5+5+3", or one number. */
static bool read_list(struct pipe_split *s, const char **at)
{
    uint32_t count = 0;

    do {
        if (count == PIPE_STAGES_MAX ||
            !read_number(at, LAYERS_MAX, &s->listed[count++]))
            return false;
    } while (**at == '+' && (++*at, true));
    s->stages = count;
    return true;
}

int pipe_split_read(struct pipe_split *s, const char *text, struct err *err)
{
    const char *at = text;
    bool whole;

    *s = (struct pipe_split){.chunks = 1};
    whole =
        read_list(s, &at) &&
        (*at != 'x' || (++at, read_number(&at, PIPE_STAGES_MAX, &s->chunks))) &&
        !*at;
    if (!whole)
        return err_set(err,
                       "--change: 'stages=%s' is not of the form stages=P[xV] "
                       "or, with the layers of each stage, stages=N+N...[xV]",
                       text);
    if (s->stages == 1) { /* a number of ranks */
        s->ranks = s->listed[0];
        s->listed[0] = 0;
        s->stages = s->ranks <= PIPE_RANKS_MAX ? s->ranks * s->chunks : 0;
    } else {
        s->ranks = s->stages % s->chunks ? 0 : s->stages / s->chunks;
    }
    if (!s->ranks)
        return err_set(err,
                       "--change: stages=%s: the %" PRIu32 " stages are not "
                       "%" PRIu32 " of each rank",
                       text, s->stages, s->chunks);
    if (s->ranks < 2 || s->ranks > PIPE_RANKS_MAX ||
        s->stages > PIPE_STAGES_MAX)
        return err_set(err,
                       "--change: stages=%s: a pipeline has 2 to %d ranks and "
                       "at most %d stages",
                       text, PIPE_RANKS_MAX, PIPE_STAGES_MAX);
    return 0;
}

int pipe_split_layers(struct pipe_split *s, uint32_t layers, struct err *err)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < s->stages; i++) {
        s->first[i] = sum;
        sum += s->listed[0] ? s->listed[i]
                            : layers / s->stages + (i < layers % s->stages);
    }
    s->first[s->stages] = sum;
    if (sum != layers)
        return err_set(err,
                       "--change: the stages have %" PRIu32 " layers, the "
                       "recording %" PRIu32,
                       sum, layers);
    if (layers < s->stages)
        return err_set(err,
                       "--change: %" PRIu32 " layers are too few for %" PRIu32
                       " stages: each needs one",
                       layers, s->stages);
    return 0;
}

uint32_t pipe_split_stage(const struct pipe_split *split, uint32_t layer)
{
    return (uint32_t)BISECT(s, split->stages, split->first[s + 1] < layer);
}
