/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/result_cards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"

#define SIZE_LENGTH 16

/* --- whose ---------------------------------------------------------------- */

bool result_is_own_card(const struct session *s,
                        const struct session_process *p, unsigned card)
{
    if (s->world_size)
        return session_card_of(s, p->rank) == card;
    return p->world_size > 1 && p->local_rank == card;
}

static bool process_uses(const struct session_process *p, unsigned card)
{
    return atomic_load(&p->usage[card].context) != 0;
}

/* The rank that has CARD for itself, and uses it; -1: none, or it was not run.
 */
static int64_t owner_of(const struct session *s, unsigned card)
{
    for (uint32_t i = 0; i < session_slots(s); i++) {
        const struct session_process *p = &s->processes[i];
        if (process_uses(p, card) && result_is_own_card(s, p, card))
            return p->rank;
    }
    return -1;
}

/* --- others --------------------------------------------------------------- */

static uint64_t end_of(const struct session_process *p)
{
    uint64_t end_ns = atomic_load(&p->end_ns);

    return end_ns ? end_ns : UINT64_MAX;
}

static bool processes_meet(const struct session_process *p,
                           const struct session_process *q)
{
    return p->start_ns < end_of(q) && q->start_ns < end_of(p);
}

static const struct session_process *process_of(const struct session *s,
                                                uint32_t number)
{
    for (uint32_t i = 0; i < session_slots(s); i++)
        if (s->processes[i].number == number)
            return &s->processes[i];
    return NULL;
}

static void other_add(struct result_device *d, const struct session_process *p)
{
    d->others = xreallocarray(d->others, d->other_count + 1, sizeof *d->others);
    struct result_other *other = &d->others[d->other_count++];
    *other = (struct result_other){
        .number = p->number,
        .rank = p->rank,
        .peak_bytes = atomic_load(&p->usage[d->card].peak_used),
    };
    snprintf(other->program, sizeof other->program, "%s", p->program);
}

static void others_of(struct result_device *d, const struct session *s)
{
    const struct session_process *own = process_of(s, d->process);

    for (uint32_t i = 0; own && i < session_slots(s); i++) {
        const struct session_process *p = &s->processes[i];
        if (p != own && process_uses(p, d->card) && processes_meet(p, own))
            other_add(d, p);
    }
}

void result_others_collect(struct result *r, const struct session *s)
{
    for (struct result_walk w = {NULL}; result_walk_next(r, &w);)
        if (w.device->others_bytes)
            others_of(w.device, s);
}

const char *result_others_text(const struct result_device *d, char *text,
                               size_t size)
{
    if (d->other_count == 1)
        snprintf(text, size, "another process on the GPU (%s)",
                 d->others[0].program);
    else if (d->other_count)
        snprintf(text, size, "%zu other processes on the GPU (%s)",
                 d->other_count, d->others[0].program);
    else
        snprintf(text, size, "other processes on the GPU");
    return text;
}

/* --- strays --------------------------------------------------------------- */

static struct result_stray *stray_get(struct result *r, unsigned card,
                                      unsigned index, int64_t owner)
{
    for (size_t i = 0; i < r->stray_count; i++)
        if (r->strays[i].card == card)
            return &r->strays[i];
    r->strays =
        xreallocarray(r->strays, r->stray_count + 1, sizeof *r->strays);
    r->strays[r->stray_count] = (struct result_stray){
        .card = card, .index = index, .owner = owner,
        .least_bytes = UINT64_MAX};
    return &r->strays[r->stray_count++];
}

static void stray_add(struct result *r, const struct session *s,
                      const struct session_process *p, unsigned card)
{
    int64_t owner = owner_of(s, card);
    uint64_t bytes = atomic_load(&p->usage[card].peak_used);

    if (owner < 0 && !(s->world_size && card >= s->rank_count))
        return; /* nobody else's: the ranks choose in another order */
    struct result_stray *stray =
        stray_get(r, card, session_card_index(s, card), owner);
    if (!rank_set_has(&stray->ranks, p->rank))
        rank_set_add(&stray->ranks, p->rank);
    if (bytes < stray->least_bytes)
        stray->least_bytes = bytes;
    if (bytes > stray->most_bytes)
        stray->most_bytes = bytes;
}

static int process_compare(const void *one, const void *other)
{
    const struct session_process *const *a = one, *const *b = other;

    return (*a)->rank < (*b)->rank ? -1 : (*a)->rank > (*b)->rank;
}

void result_strays_collect(struct result *r, const struct session *s)
{
    uint32_t count = session_slots(s);
    const struct session_process **sorted =
        xcalloc(count + 1, sizeof(struct session_process *));

    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &s->processes[i];
    qsort(sorted, count, sizeof(struct session_process *), process_compare);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t c = 0; c < s->device_count && c < SESSION_DEVICES; c++)
            if (sorted[i]->world_size > 1 && process_uses(sorted[i], c) &&
                !result_is_own_card(s, sorted[i], c))
                stray_add(r, s, sorted[i], c);
    free(sorted);
}

/* Whether all ranks of RANK's node are processes. */
static bool node_is_whole(const struct session *s, uint32_t rank)
{
    uint32_t first = rank - rank % s->local_world_size;

    for (uint32_t i = 0; i < s->local_world_size; i++)
        if (first + i < s->world_size &&
            session_card_of(s, first + i) == UINT32_MAX)
            return false;
    return true;
}

bool result_strays_hide(const struct result *r, const struct session *s)
{
    bool whole = false;

    for (uint32_t i = 0; s->world_size && i < s->rank_count; i++)
        whole = whole || node_is_whole(s, s->ranks[i]);
    return s->world_size && r->stray_count && !whole;
}

/* "ranks 1-7 use GPU 0, which is rank 0's: up to 15.5 GiB each". */
static void stray_note(struct result *r, const struct result_stray *stray,
                       const char *after)
{
    char most[SIZE_LENGTH], whose[48] = "a rank's that was not run";
    char *ranks = rank_set_text(&stray->ranks);
    bool several = stray->ranks.count > 1;

    if (stray->owner >= 0)
        snprintf(whose, sizeof whose, "rank %u's", (unsigned)stray->owner);
    units_format_bytes(stray->most_bytes, most, sizeof most);
    result_note(r, "rank%s %s use%s GPU %u, which is %s: up to %s%s%s",
                several ? "s" : "", ranks, several ? "" : "s", stray->index,
                whose, most, several ? " each" : "", after);
    free(ranks);
}

void result_strays_note(struct result *r)
{
    static const char advice[] =
        ". A rank selects its own GPU before it first uses one "
        "(torch.cuda.set_device, map_location of torch.load)";

    if (r->stray_count)
        stray_note(r, &r->strays[0], advice);
    if (r->stray_count > 1)
        result_note(r, "so it is with %zu more GPUs (--json lists them)",
                    r->stray_count - 1);
    if (r->verdict == VERDICT_UNKNOWN)
        result_note(r, "to know the peak, run all ranks of a node: --ranks "
                       "all, or a list that has them");
}
