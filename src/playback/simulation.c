/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/simulator.h"

#include <math.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "playback/host_times.h"

#define INFOS_FIRST 4096 /* a power of two */
#define FACTOR_ONE  (UINT64_C(1) << SIMULATOR_FACTOR_BITS)
#define FACTOR_MOST 1e6

/* --- steps ---------------------------------------------------------------- */

static void mark_all(struct simulator *r, uint64_t tag)
{
    uint64_t measured_ns =
        r->record_ns > r->measured_end_ns ? r->record_ns : r->measured_end_ns;

    struct simulation_moment *at =
        &(tag & 1 ? r->t->ends : r->t->begins)[tag / 2];

    at->measured_ns = measured_ns;
    at->host_ns = r->host_ns;
    if (!r->t->device_count) /* nothing was called yet */
        at->ns = r->host_ns;
    for (uint32_t i = 0; i < r->t->device_count; i++)
        sim_mark(r->sim, r->numbers[i], r->host_ns, tag);
}

static void steps_follow(struct simulator *r)
{
    const struct step_list *l = &r->t->steps;

    if (r->in_step && r->record >= l->steps[r->step].end) {
        if (simulator_is_typical(r) && r->calls == r->times->gap_count) {
            simulator_host_work(r, r->times->after);
            r->record_ns = l->steps[r->step].end_ns;
        }
        mark_all(r, (uint64_t)r->step * 2 + 1);
        r->in_step = false;
        r->step++;
    }
    if (!r->in_step && r->step < l->count &&
        r->record >= l->steps[r->step].first) {
        mark_all(r, (uint64_t)r->step * 2);
        r->in_step = true;
        r->calls = 0;
    }
}

/* What the process's own simulation came to, where ITEM says it. */
static void seen_read(struct simulator *r, const struct trace_item *item)
{
    static const char setting[] = TRACE_SIMULATED;
    size_t at = sizeof setting - 1;
    uint64_t ns = 0;

    if (item->head.kind != TRACE_SETTING || item->head.text_bytes < at ||
        memcmp(item->text, setting, at))
        return;
    for (; at < item->head.text_bytes && item->text[at] >= '0' &&
           item->text[at] <= '9';
         at++)
        ns = ns * 10 + (uint64_t)(item->text[at] - '0');
    r->t->seen_ns = ns;
}

void simulator_add(struct simulator *r, const struct trace_item *item)
{
    if (r->dead)
        return;
    r->record = item->ordinal;
    if (!r->begun)
        r->record_ns = r->origin_ns = item->head.time_ns;
    r->begun = true;
    if (trace_says_imported(item) || trace_says_real(item))
        r->imported = r->t->imported = true;
    if (r->imported) {
        r->host_ns =
            simulator_profile_ns(r, item->head.thread, item->head.time_ns);
        r->record_ns = item->head.time_ns;
    } else {
        simulator_host_record(r, item->head.time_ns);
    }
    r->come_ns = r->host_ns;
    seen_read(r, item);
    steps_follow(r);
    if (r->marks)
        simulator_delay_record(r, item);
    if (r->dead)
        return;
    if (r->sink.record)
        r->sink.record(r->sink.context, item, r->host_ns);
    op_trace_add(r->ops, item);
}

struct simulator *simulator_create(struct simulation *t,
                                   const struct simulation_options *options,
                                   const struct host_times *times,
                                   const struct simulation_sink *sink)
{
    struct simulator *r = xcalloc(1, sizeof *r);
    double factor = options->host_factor;

    r->t = t;
    r->thread_number = r->stream_number = SIM_NONE;
    t->stuck_place = SIMULATION_NO_PLACE;
    r->options = *options;
    r->times = times;
    if (sink)
        r->sink = *sink;
    if (factor > 0)
        r->factor = (uint64_t)llround(
            (factor < FACTOR_MOST ? factor : FACTOR_MOST) * FACTOR_ONE);
    r->world = options->world ? options->world : world_create(NULL, false);
    r->sim = r->world->sim;
    if (options->others)
        sim_others(r->sim, &options->others->sim);
    r->host_ns = options->start_ns;
    r->ops = op_trace_create(simulator_op, r);
    r->pricer = pricer_create(&r->options.price);
    if (options->own)
        price_move_init(&r->move, options->own, &r->options.price);
    if (options->delays)
        simulator_delay_init(r);
    r->info_capacity = INFOS_FIRST;
    r->infos = xcalloc(r->info_capacity, sizeof *r->infos);
    for (unsigned i = 0; i < SESSION_DEVICES; i++)
        r->devices[i] = SIM_NONE;
    return r;
}

/* All was called. */
static void host_end(struct simulator *r)
{
    if (r->concluded)
        return;
    r->concluded = true;
    memcpy(r->t->delayed, r->delay.hits, sizeof r->t->delayed);
    memcpy(r->t->delay_ns, r->delay.added_ns, sizeof r->t->delay_ns);
    r->t->library_calls = r->delay.library_calls;
    r->record++;
    steps_follow(r);
    if (r->in_step)
        mark_all(r, (uint64_t)r->step * 2 + 1);
    if (r->host_ns > r->t->end_ns)
        r->t->end_ns = r->host_ns;
}

bool simulator_waits(struct simulator *r)
{
    if (r->unfinished.active)
        simulator_call_finish(r);
    simulator_queue_go(r);
    if (r->unfinished.active)
        return true;
    if (r->ended)
        host_end(r);
    return false;
}

/* The place of the first collective that is not done: what comes before it is,
 * so that it waits for nothing of its own process. */
static uint64_t stuck_find(const struct simulator *r)
{
    const struct simulation_op *first = NULL;

    for (size_t i = 0; i < r->info_capacity; i++) {
        const struct simulation_op *info = &r->infos[i];
        if (info->done.tag && info->kind == OP_COLLECTIVE &&
            (!first || info->done.tag < first->done.tag))
            first = info;
    }
    return first ? first->shape[0] : SIMULATION_NO_PLACE;
}

void simulator_conclude(struct simulator *r)
{
    if (!r->unfinished.active && !r->queue_count && !r->under_way)
        return;
    r->t->stuck = true;
    r->t->stuck_place = stuck_find(r);
}

void simulator_end(struct simulator *r)
{
    op_trace_end(r->ops);
    r->ended = true;
    if (simulator_waits(r) || r->world->together)
        return;
    if (!sim_drain(r->sim))
        r->t->stuck = true;
}

void simulator_slow(struct simulator *r, double factor)
{
    pricer_slow(r->pricer, factor);
}

uint64_t simulator_factor(const struct simulator *r)
{
    return r->factor;
}

uint64_t simulator_host_ns(const struct simulator *r)
{
    return r->host_ns;
}

uint64_t simulator_come_ns(const struct simulator *r)
{
    return r->come_ns;
}

uint64_t simulator_waited_ns(const struct simulator *r)
{
    return r->waited_ns;
}

bool simulator_event_ns(struct simulator *r, uint64_t event, uint64_t *ns)
{
    uint32_t number = simulator_number(&r->events, event);

    if (number == SIM_NONE || !sim_event_done(r->sim, number, r->host_ns))
        return false;
    *ns = sim_event_ns(r->sim, number);
    return *ns != UINT64_MAX;
}

bool simulator_is_behind(struct simulator *r, uint64_t event)
{
    uint32_t number = simulator_number(&r->events, event);

    return number != SIM_NONE && !sim_event_done(r->sim, number, r->host_ns);
}

void simulator_listen(struct simulator *r, const struct simulation_sink *sink)
{
    r->sink = sink ? *sink : (struct simulation_sink){.op = NULL};
}

void simulator_settle(struct simulator *r)
{
    while (sim_step(r->sim, r->host_ns))
        continue;
}

uint64_t simulator_next_ns(const struct simulator *r)
{
    return sim_next(r->sim);
}

bool simulator_advance(struct simulator *r, uint64_t limit_ns)
{
    return sim_step(r->sim, limit_ns);
}

void simulator_drain(struct simulator *r)
{
    sim_drain(r->sim);
}

uint64_t simulator_calls(const struct simulator *r)
{
    return r->call;
}

struct trace_names simulator_names_take(struct simulator *r)
{
    return op_trace_names_take(r->ops);
}

void simulator_destroy(struct simulator *r)
{
    pricer_destroy(r->pricer);
    price_move_fini(&r->move);
    op_trace_destroy(r->ops);
    xfree(r->infos);
    map_fini(&r->streams);
    map_fini(&r->events);
    map_fini(&r->threads);
    step_tracker_fini(&r->marked);
    xfree(r->last_calls);
    map_fini(&r->beside);
    xfree(r->queue);
    if (!r->options.world)
        world_destroy(r->world);
    xfree(r);
}
