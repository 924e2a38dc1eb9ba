/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/delay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/random.h"
#include "common/base/text_begins.h"
#include "playback/memsim_delay.h"

#define LATE_MOST UINT64_C(3600000000000000) /* 1,000 hours, of one call */

bool delays_have(const struct delays *d, enum delay_kind kind)
{
    for (uint32_t i = 0; d && i < d->count; i++)
        if (d->all[i].kind == kind)
            return true;
    return false;
}

bool delays_need_steps(const struct delays *d)
{
    for (uint32_t i = 0; d && i < d->count; i++)
        if (d->all[i].kind >= DELAY_HOST || d->all[i].from_step ||
            d->all[i].to_step != DELAY_NEVER)
            return true;
    return d && *d->library;
}

/* --- whom an entry is about ----------------------------------------------- */

static bool is_about_rank(const struct delay *d, const struct delay_ranks *r,
                          uint32_t rank)
{
    uint32_t node = r->local ? rank / r->local : 0;

    return (d->rank == DELAY_ANY || d->rank == rank) &&
           (d->node == DELAY_ANY || d->node == node);
}

/* The next rank of R, from FROM on, that D is about. */
static bool rank_next(const struct delay *d, const struct delay_ranks *r,
                      uint32_t from, uint32_t *rank)
{
    if (!r->members.count) {
        *rank = r->rank;
        return from <= r->rank && is_about_rank(d, r, r->rank);
    }
    for (uint32_t at = from; rank_set_next(&r->members, at, &at); at++)
        if (is_about_rank(d, r, at)) {
            *rank = at;
            return true;
        }
    return false;
}

/* --- what it is about ----------------------------------------------------- */

/* A profile names the kernel, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)";
 * the call is ncclAllReduce. */
static bool has_name(const struct delay_call *call, const char *name)
{
    static const char *const kernels[] = {"ncclDevKernel_", "ncclKernel_"};

    if (strstr(call->name, name))
        return true;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        size_t length = strlen(kernels[i]);
        if (!text_begins(name, "nccl") ||
            strncmp(call->name, kernels[i], length))
            continue;
        return text_begins(call->name + length, name + 4);
    }
    return false;
}

static bool is_about_call(const struct delay *d, const struct delay_call *call)
{
    bool talks = call->kind == OP_COLLECTIVE;

    switch (d->kind) {
    case DELAY_CALL:
        return has_name(call, d->name);
    case DELAY_LINK:
        return talks && call->link == SIM_LINK_NODES;
    case DELAY_GPU:
        return call->engine == SIM_COMPUTE && !talks;
    default:
        return false;
    }
}

static bool is_in_time(const struct delay *d, uint32_t step, uint64_t number)
{
    return step >= d->from_step && step <= d->to_step &&
           (number + 1) % d->every == 0;
}

/* --- how much ------------------------------------------------------------- */

/* In [-1, 1], of call NUMBER of entry WHICH on RANK. */
static double delay_noise(const struct delay *d, uint32_t which, uint32_t rank,
                          uint64_t number)
{
    uint64_t seed = random_at(random_at(d->seed, which), rank);

    return (double)(random_at(seed, number) >> 11) * 0x1p-52 - 1;
}

/* By how much of itself the delay of this call differs: the most of all ranks
 * that the entry is about. */
static double noise_most(const struct delay_state *s, uint32_t which,
                         uint32_t rank, uint64_t number)
{
    const struct delay *d = &s->delays->all[which];
    double most = -1;

    if (!(d->jitter > 0))
        return 0;
    for (; rank_next(d, s->ranks, rank, &rank); rank++)
        most = fmax(most, delay_noise(d, which, rank, number));
    return d->jitter * most;
}

static uint64_t late_add(uint64_t late_ns, double more_ns)
{
    double sum = (double)late_ns + more_ns;

    return sum < (double)LATE_MOST ? (uint64_t)llround(sum) : LATE_MOST;
}

/* Entry WHICH is about a call or a step that it delays; of DURATION_NS. Adds
 * to *LATE_NS and *FACTOR. */
static void entry_apply(struct delay_state *s, uint32_t which, uint32_t rank,
                        const struct delay_call *call,
                        struct delay_effect *effect)
{
    const struct delay *d = &s->delays->all[which];
    double part = 1 + noise_most(s, which, rank, s->calls[which] - 1);
    double own = call ? (double)call->duration_ns : 0;
    double more_ns =
        part * (d->factor > 0 ? (d->factor - 1) * own : (double)d->ns);

    s->hits[which]++;
    s->added_ns[which] = late_add(s->added_ns[which], more_ns);
    if (d->factor > 0 && call && call->kind != OP_COLLECTIVE)
        effect->factor *= 1 + part * (d->factor - 1);
    else
        effect->late_ns = late_add(effect->late_ns, more_ns);
}

static uint64_t library_ask(struct delay_state *s,
                            const struct delay_call *call)
{
    bool talks = call->kind == OP_COLLECTIVE;
    struct memsim_delay_call asked = {
        .size = sizeof asked,
        .step = call->step,
        .number = s->library_calls++,
        .name = call->name,
        .ranks = talks ? call->ranks : 0,
        .between_nodes = talks && call->link == SIM_LINK_NODES,
        .bytes = talks ? call->bytes : 0,
        .duration_ns = call->duration_ns,
    };

    return s->library(&asked, s->ranks);
}

struct delay_effect delay_of(struct delay_state *s,
                             const struct delay_call *call)
{
    struct delay_effect effect = {.factor = 1};
    uint32_t rank;

    for (uint32_t i = 0; i < s->delays->count; i++) {
        const struct delay *d = &s->delays->all[i];
        if (!is_about_call(d, call) || !rank_next(d, s->ranks, 0, &rank) ||
            !is_in_time(d, call->step, s->calls[i]++))
            continue;
        entry_apply(s, i, rank, call, &effect);
    }
    if (s->library)
        effect.late_ns =
            late_add(effect.late_ns, (double)library_ask(s, call));
    return effect;
}

uint64_t delay_of_step(struct delay_state *s, uint32_t step)
{
    struct delay_effect effect = {.factor = 1};
    uint32_t rank;

    for (uint32_t i = 0; i < s->delays->count; i++) {
        const struct delay *d = &s->delays->all[i];
        if (d->kind == DELAY_HOST && rank_next(d, s->ranks, 0, &rank) &&
            is_in_time(d, step, s->calls[i]++))
            entry_apply(s, i, rank, NULL, &effect);
    }
    return effect.late_ns;
}

uint32_t delay_death(const struct delay_state *s, uint32_t step)
{
    uint32_t rank;

    for (uint32_t i = 0; i < s->delays->count; i++) {
        const struct delay *d = &s->delays->all[i];
        if (d->kind == DELAY_DEATH && step >= d->from_step &&
            rank_next(d, s->ranks, 0, &rank))
            return rank;
    }
    return DELAY_ANY;
}
