/* SPDX-License-Identifier: Apache-2.0
 * Two steps, as in PyTorch: first the order of each rank's computations; then
 * the ranks take turns, and who computes what another one needs puts the
 * receive into that one's list. So sends and receives are in an order that
 * cannot hang. Turns that FSDP's stages would use to gather and free their
 * parameters count, too, as PyTorch has them in any case. */
#include "memsim/change/pipe_interleaved.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define NEXT_STAGES 3 /* whose parameters are gathered ahead */

enum turn_kind { TURN_FORWARD, TURN_BACKWARD, TURN_NOTHING };

struct turn {
    enum turn_kind kind;
    uint32_t stage, microbatch;
};

struct turns { /* of one rank */
    struct turn *all;
    size_t count, capacity;
};

struct interleaving {
    const struct pipe_shape *shape;
    struct pipe_list *lists;
    struct turns *computed; /* of each rank: what it computes */
    struct turns *turns;    /* the same with the turns for nothing */
    size_t *at;             /* of each rank: its next turn */
    uint32_t *received;     /* by stage, microbatch and direction: the exchange
                               + 1 that receives; 0: not yet */
    uint32_t stages;
};

static void turn_add(struct turns *t, enum turn_kind kind, uint32_t stage,
                     uint32_t microbatch)
{
    xgrow(&t->all, t->count, &t->capacity, sizeof *t->all);
    t->all[t->count++] = (struct turn){kind, stage, microbatch};
}

/* --- what a rank computes ------------------------------------------------- */

struct order {
    const struct pipe_shape *shape;
    uint32_t rank, round; /* microbatches of a round */
    uint32_t warm;        /* forwards before the first backward */
    uint32_t *done;       /* microbatches by stage and direction */
};

static void order_add(struct order *o, struct turns *t, bool backward,
                      uint32_t n)
{
    uint32_t chunk = n / o->round % o->shape->chunks;
    uint32_t local = backward ? o->shape->chunks - 1 - chunk : chunk;
    uint32_t stage = local * o->shape->ranks + o->rank;

    turn_add(t, backward ? TURN_BACKWARD : TURN_FORWARD, stage,
             o->done[2 * stage + backward]++);
}

/* Round after round, each of the rank's stages works on the round's
 * microbatches. The warm-up is two forwards longer with each rank before the
 * last one. */
static void order_make(const struct interleaving *g, uint32_t rank)
{
    const struct pipe_shape *s = g->shape;
    uint32_t rounds = s->microbatches / s->ranks;
    struct order o = {.shape = s, .rank = rank};
    uint32_t all = s->chunks * s->microbatches;

    o.round = s->microbatches / (rounds ? rounds : 1);
    o.warm = (s->chunks - 1) * o.round + 2 * (s->ranks - 1 - rank);
    o.warm = o.warm < all ? o.warm : all;
    o.done = xcalloc(2 * (size_t)g->stages, sizeof *o.done);
    for (uint32_t n = 0; n < all + o.warm; n++) {
        if (n < all)
            order_add(&o, &g->computed[rank], false, n);
        if (n >= o.warm)
            order_add(&o, &g->computed[rank], true, n - o.warm);
    }
    free(o.done);
}

/* --- turns for nothing ---------------------------------------------------- */

/* The first NEXT_STAGES different stages of T from FROM on. */
static uint32_t next_stages(const struct turns *t, size_t from,
                            uint32_t next[NEXT_STAGES])
{
    uint32_t count = 0;

    for (size_t i = from; i < t->count && count < NEXT_STAGES; i++) {
        uint32_t n = 0;
        while (n < count && next[n] != t->all[i].stage)
            n++;
        if (n == count)
            next[count++] = t->all[i].stage;
    }
    return count;
}

/* A turn for each stage that goes from ACTIVE, and one for each that comes. */
static void active_change(struct turns *to, bool *active, uint32_t stages,
                          const uint32_t *next, uint32_t count)
{
    for (uint32_t s = 0; s < stages; s++) {
        bool wanted = false;
        for (uint32_t i = 0; i < count; i++)
            wanted |= next[i] == s;
        if (wanted != active[s])
            turn_add(to, TURN_NOTHING, s, 0);
        active[s] = wanted;
    }
}

static void turns_make(const struct interleaving *g, uint32_t rank)
{
    const struct turns *from = &g->computed[rank];
    struct turns *to = &g->turns[rank];
    bool *active = xcalloc(g->stages, sizeof *active);
    uint32_t next[NEXT_STAGES];

    for (size_t i = 0; i < from->count; i++) {
        const struct turn *t = &from->all[i];
        uint32_t count = next_stages(from, i, next);
        active_change(to, active, g->stages, next, count);
        turn_add(to, t->kind, t->stage, t->microbatch);
        if (t->kind == TURN_BACKWARD &&
            t->microbatch + 1 == g->shape->microbatches)
            turn_add(to, TURN_NOTHING, t->stage, 0); /* ends its gradients */
    }
    free(active);
}

/* --- sends and receives --------------------------------------------------- */

static uint32_t *received_at(const struct interleaving *g, uint32_t stage,
                             uint32_t microbatch, bool gradient)
{
    size_t row = (size_t)stage * g->shape->microbatches + microbatch;

    return &g->received[2 * row + gradient];
}

/* Does stage STAGE get something from a neighbour before it computes? */
static bool turn_needs(const struct interleaving *g, const struct turn *t)
{
    return t->kind == TURN_BACKWARD ? t->stage + 1 < g->stages : t->stage > 0;
}

static void send_turn(const struct interleaving *g, uint32_t rank,
                      const struct turn *t)
{
    bool gradient = t->kind == TURN_BACKWARD;
    uint32_t target = gradient ? t->stage - 1 : t->stage + 1;
    uint32_t boundary = gradient ? target : t->stage;
    uint32_t peer = target % g->shape->ranks;
    struct pipe_transfer part = {false, gradient, boundary, peer};

    if (gradient ? !t->stage : target == g->stages)
        return;
    pipe_list_exchange(&g->lists[rank], &part, 1);
    if (gradient)
        pipe_list_release(&g->lists[rank]);
    part.receive = true;
    part.peer = rank;
    *received_at(g, target, t->microbatch, gradient) =
        pipe_list_exchange(&g->lists[peer], &part, 1) + 1;
}

/* Takes the next turn of RANK. False: it has to wait for another rank. */
static bool turn_take(const struct interleaving *g, uint32_t rank)
{
    const struct turn *t = &g->turns[rank].all[g->at[rank]];
    bool backward = t->kind == TURN_BACKWARD;

    if (t->kind != TURN_NOTHING) {
        uint32_t got = *received_at(g, t->stage, t->microbatch, backward);
        if (turn_needs(g, t) && !got)
            return false;
        if (turn_needs(g, t))
            pipe_list_wait(&g->lists[rank], got - 1);
        pipe_list_add(&g->lists[rank],
                      &(struct pipe_action){.what = backward ? PIPE_BACKWARD
                                                             : PIPE_FORWARD,
                                            .stage = t->stage,
                                            .microbatch = t->microbatch});
        if (backward && t->stage + 1 < g->stages)
            pipe_list_release(&g->lists[rank]);
        send_turn(g, rank, t);
    }
    g->at[rank]++;
    return true;
}

/* At the end the sends are waited for, the last one first. */
static void wait_for_sends(struct pipe_list *list)
{
    for (size_t i = list->count; i-- > 0;)
        if (list->all[i].what == PIPE_EXCHANGE &&
            !list->all[i].parts[0].receive)
            pipe_list_wait(list, list->all[i].exchange);
}

static int all_take_turns(const struct interleaving *g, struct err *err)
{
    bool goes_on = true;

    while (goes_on) {
        goes_on = false;
        for (uint32_t r = 0; r < g->shape->ranks; r++)
            if (g->at[r] < g->turns[r].count)
                goes_on |= turn_take(g, r);
    }
    for (uint32_t r = 0; r < g->shape->ranks; r++) {
        if (g->at[r] < g->turns[r].count)
            return err_set(err, "--schedule interleaved: ranks would wait for "
                                "each other");
        wait_for_sends(&g->lists[r]);
    }
    return 0;
}

int pipe_interleaved_make(const struct pipe_shape *s, struct pipe_list *lists,
                          struct err *err)
{
    uint32_t rounds = s->microbatches / s->ranks;
    struct interleaving g = {
        .shape = s, .lists = lists, .stages = s->ranks * s->chunks};

    if (rounds > 1 && s->microbatches % rounds)
        return err_set(err,
                       "--schedule interleaved: %" PRIu32 " microbatches are "
                       "not %" PRIu32 " rounds of as many, which PyTorch needs "
                       "with %" PRIu32 " ranks",
                       s->microbatches, rounds, s->ranks);
    g.computed = xcalloc(s->ranks, sizeof *g.computed);
    g.turns = xcalloc(s->ranks, sizeof *g.turns);
    g.at = xcalloc(s->ranks, sizeof *g.at);
    g.received =
        xcalloc(2 * (size_t)g.stages * s->microbatches, sizeof *g.received);
    for (uint32_t r = 0; r < s->ranks; r++) {
        order_make(&g, r);
        turns_make(&g, r);
    }
    int rc = all_take_turns(&g, err);
    for (uint32_t r = 0; r < s->ranks; r++) {
        free(g.computed[r].all);
        free(g.turns[r].all);
    }
    free(g.computed);
    free(g.turns);
    free(g.at);
    free(g.received);
    return rc;
}
