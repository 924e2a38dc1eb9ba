/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/pipe_schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/pipe_interleaved.h"

#define NO_EXCHANGE UINT32_MAX

static const char *const names[] = {
    [PIPE_GPIPE] = "gpipe",
    [PIPE_1F1B] = "1f1b",
    [PIPE_INTERLEAVED] = "interleaved",
};

const char *pipe_schedule_name(enum pipe_schedule_kind kind)
{
    return names[kind];
}

int pipe_schedule_named(enum pipe_schedule_kind *kind, const char *name,
                        uint32_t chunks, struct err *err)
{
    *kind = chunks > 1 ? PIPE_INTERLEAVED : PIPE_1F1B;
    if (!name)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) {
            *kind = (enum pipe_schedule_kind)i;
            if ((*kind == PIPE_INTERLEAVED) == (chunks > 1))
                return 0;
            return err_set(err,
                           "--schedule %s: it has %s of each rank, as in "
                           "--change stages=%s",
                           name, chunks > 1 ? "one stage" : "several stages",
                           chunks > 1 ? "4" : "4x2");
        }
    return err_set(err,
                   "--schedule: '%s' is none of gpipe, 1f1b and "
                   "interleaved",
                   name);
}

/* --- lists ---------------------------------------------------------------- */

void pipe_list_add(struct pipe_list *list, const struct pipe_action *a)
{
    xgrow(&list->all, list->count, &list->capacity, sizeof *list->all);
    list->all[list->count++] = *a;
}

void pipe_list_fini(struct pipe_list *list)
{
    free(list->all);
    *list = (struct pipe_list){.count = 0};
}

uint32_t pipe_list_exchange(struct pipe_list *list,
                            const struct pipe_transfer *parts, uint32_t count)
{
    struct pipe_action a = {.what = PIPE_EXCHANGE,
                            .exchange = list->exchanges,
                            .part_count = count};

    if (!count)
        return NO_EXCHANGE;
    memcpy(a.parts, parts, count * sizeof *parts);
    pipe_list_add(list, &a);
    return list->exchanges++;
}

void pipe_list_wait(struct pipe_list *list, uint32_t exchange)
{
    if (exchange != NO_EXCHANGE)
        pipe_list_add(list, &(struct pipe_action){.what = PIPE_WAIT,
                                                  .exchange = exchange});
}

void pipe_list_release(struct pipe_list *list)
{
    pipe_list_add(list, &(struct pipe_action){.what = PIPE_RELEASE});
}

uint32_t pipe_list_in_flight(const struct pipe_list *list, uint32_t stage)
{
    uint32_t now = 0, most = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->all[i].stage != stage)
            continue;
        now += list->all[i].what == PIPE_FORWARD;
        now -= list->all[i].what == PIPE_BACKWARD;
        most = now > most ? now : most;
    }
    return most;
}

/* --- one stage on each rank ----------------------------------------------- */

/* A rank while its list is made. */
struct single {
    const struct pipe_shape *shape;
    struct pipe_list *list;
    uint32_t rank;
    /* what the next exchange begins with */
    struct pipe_transfer sends[1];
    uint32_t send_count;
};

/* Microbatches come in their order, so that a transfer does not say which. */
static uint32_t receive_forward(const struct single *s,
                                struct pipe_transfer *part)
{
    *part = (struct pipe_transfer){true, false, s->rank - 1, s->rank - 1};
    return s->rank > 0;
}

static uint32_t receive_backward(const struct single *s,
                                 struct pipe_transfer *part)
{
    *part = (struct pipe_transfer){true, true, s->rank, s->rank + 1};
    return s->rank + 1 < s->shape->ranks;
}

static bool sends_forward(const struct single *s)
{
    return s->rank + 1 < s->shape->ranks;
}

static uint32_t send_forward(const struct single *s, struct pipe_transfer *part)
{
    *part = (struct pipe_transfer){false, false, s->rank, s->rank + 1};
    return sends_forward(s);
}

static uint32_t send_backward(const struct single *s,
                              struct pipe_transfer *part)
{
    *part = (struct pipe_transfer){false, true, s->rank - 1, s->rank - 1};
    return s->rank > 0;
}

static void add_compute(const struct single *s, enum pipe_what what,
                        uint32_t microbatch)
{
    pipe_list_add(s->list, &(struct pipe_action){.what = what,
                                                 .stage = s->rank,
                                                 .microbatch = microbatch});
}

static uint32_t add_exchange(const struct single *s,
                             const struct pipe_transfer *part, uint32_t count)
{
    return pipe_list_exchange(s->list, part, count);
}

static void add_release(const struct single *s, bool sent)
{
    if (sent)
        pipe_list_release(s->list);
}

/* A backward, and the output of its stage is given back, but for that of the
 * last forward. */
static void backward_of(const struct single *s, uint32_t microbatch)
{
    add_compute(s, PIPE_BACKWARD, microbatch);
    add_release(s, sends_forward(s) && microbatch + 1 < s->shape->microbatches);
}

/* At the end of a step: what the last forward and the last backward sent. */
static void release_last(const struct single *s)
{
    add_release(s, s->rank > 0);
    add_release(s, sends_forward(s));
}

static void wait_for_all(const struct single *s, const uint32_t *sent)
{
    for (uint32_t m = 0; m < s->shape->microbatches; m++)
        pipe_list_wait(s->list, sent[m]);
}

/* All forwards, then all backwards. */
static void schedule_gpipe(const struct single *s)
{
    uint32_t all = s->shape->microbatches;
    uint32_t *sent = xcalloc(all, sizeof *sent);
    struct pipe_transfer part;

    for (uint32_t m = 0; m < all; m++) {
        uint32_t count = receive_forward(s, &part);
        pipe_list_wait(s->list, add_exchange(s, &part, count));
        add_compute(s, PIPE_FORWARD, m);
        sent[m] = add_exchange(s, &part, send_forward(s, &part));
    }
    wait_for_all(s, sent);
    for (uint32_t m = 0; m < all; m++) {
        uint32_t count = receive_backward(s, &part);
        pipe_list_wait(s->list, add_exchange(s, &part, count));
        backward_of(s, m);
        sent[m] = add_exchange(s, &part, send_backward(s, &part));
        add_release(s, s->rank > 0 && m + 1 < all);
    }
    wait_for_all(s, sent);
    release_last(s);
    free(sent);
}

/* Sends what is held back together with a receive of DIRECTION. */
static void exchange_both(struct single *s, bool backward)
{
    struct pipe_transfer parts[2];
    uint32_t count = s->send_count;

    parts[0] = s->sends[0];
    count += backward ? receive_backward(s, &parts[count])
                      : receive_forward(s, &parts[count]);
    pipe_list_wait(s->list, add_exchange(s, parts, count));
}

/* The first forwards; the last one's send is held back. */
static void warm_up(struct single *s, uint32_t warm)
{
    uint32_t sent = NO_EXCHANGE;
    struct pipe_transfer part;

    for (uint32_t m = 0; m < warm; m++) {
        uint32_t count = receive_forward(s, &part);
        pipe_list_wait(s->list, add_exchange(s, &part, count));
        add_compute(s, PIPE_FORWARD, m);
        pipe_list_wait(s->list, sent);
        s->send_count = send_forward(s, &s->sends[0]);
        sent = m + 1 < warm ? add_exchange(s, s->sends, s->send_count)
                            : NO_EXCHANGE;
    }
}

/* As many forwards as the stages from this one on, then backwards and forwards
 * in turn, then the backwards that are left. */
static void one_forward_one_backward(struct single *s)
{
    uint32_t all = s->shape->microbatches, backward = 0;
    uint32_t forward = s->shape->ranks - s->rank;
    uint32_t sent;
    struct pipe_transfer part;

    warm_up(s, forward);
    for (;;) {
        exchange_both(s, true);
        backward_of(s, backward++);
        s->send_count = send_backward(s, &s->sends[0]);
        add_release(s, s->rank > 0 && backward > 1);
        if (forward == all)
            break;
        exchange_both(s, false);
        add_compute(s, PIPE_FORWARD, forward++);
        s->send_count = send_forward(s, &s->sends[0]);
    }
    sent = add_exchange(s, s->sends, s->send_count);
    while (backward < all) {
        uint32_t count = receive_backward(s, &part);
        pipe_list_wait(s->list, add_exchange(s, &part, count));
        backward_of(s, backward++);
        pipe_list_wait(s->list, sent);
        s->send_count = send_backward(s, &s->sends[0]);
        add_release(s, s->rank > 0);
        sent = add_exchange(s, s->sends, s->send_count);
    }
    pipe_list_wait(s->list, sent);
    release_last(s);
}

int pipe_schedule_make(const struct pipe_shape *shape, struct pipe_list *lists,
                       struct err *err)
{
    for (uint32_t r = 0; r < shape->ranks; r++)
        lists[r] = (struct pipe_list){.count = 0};
    if (shape->kind == PIPE_INTERLEAVED)
        return pipe_interleaved_make(shape, lists, err);
    if (shape->kind == PIPE_1F1B && shape->microbatches < shape->ranks)
        return err_set(err,
                       "--schedule 1f1b: %" PRIu32 " microbatches are fewer "
                       "than the %" PRIu32 " stages, which PyTorch refuses; "
                       "give --microbatches or --schedule gpipe",
                       shape->microbatches, shape->ranks);
    for (uint32_t r = 0; r < shape->ranks; r++) {
        struct single s = {.shape = shape, .list = &lists[r], .rank = r};
        if (shape->kind == PIPE_GPIPE)
            schedule_gpipe(&s);
        else
            one_forward_one_backward(&s);
    }
    return 0;
}
