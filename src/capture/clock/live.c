/* SPDX-License-Identifier: Apache-2.0
 * The one entry of this library: a simulation that takes records. */
#include "capture/core/run/live.h"

#include <setjmp.h>
#include <string.h>

#include "capture/clock/arena.h"
#include "capture/clock/delays.h"
#include "capture/clock/others.h"
#include "capture/clock/places.h"
#include "capture/core/base/core.h"
#include "capture/core/run/activity.h"
#include "capture/core/run/clock.h"
#include "common/trace/trace_write.h"
#include "playback/image.h"
#include "playback/simulation.h"

static struct simulation simulation;
static struct simulator *simulator;
static jmp_buf no_memory;

static void on_full(void)
{
    _longjmp(no_memory, 1);
}

static const char *clock_open(void *image, size_t bytes, void *arena,
                             size_t arena_bytes)
{
    static struct simulation_options options;
    static struct err err;

    simulation = (struct simulation){.device_count = 0};
    arena_start(arena, arena_bytes, on_full);
    if (_setjmp(no_memory))
        return "there is no memory for it";
    if (playback_image_open(image, bytes, &options, &err))
        return err.text;
    options.others = others_open();
    places_open(&options);
    const char *wrong = delays_open(&options);
    if (wrong)
        return wrong;
    simulator = simulator_create(&simulation, &options, NULL, NULL);
    return NULL;
}

_Static_assert(CLOCK_FACTOR_BITS == SIMULATOR_FACTOR_BITS, "one unit");

static uint64_t clock_factor(void)
{
    return simulator_factor(simulator);
}

/* As a reader of the trace would give it. */
static int clock_take(const struct trace_put *r, struct live_now *now)
{
    struct trace_item item = {.head = {.kind = (uint16_t)r->kind,
                                       .thread = r->thread,
                                       .time_ns = r->time_ns},
                              .fields = r->fields,
                              .text = r->text};
    size_t count = r->count < TRACE_FIELDS_MAX ? r->count : TRACE_FIELDS_MAX;

    while (count && !r->fields[count - 1])
        count--;
    item.head.fields = (uint16_t)count;
    item.head.text_bytes = (uint32_t)(
        r->text_bytes < TRACE_TEXT_MAX ? r->text_bytes : TRACE_TEXT_MAX);
    if (_setjmp(no_memory))
        return -1;
    others_record(&item);
    delays_record(&item, simulator);
    places_record(&item);
    simulator_add(simulator, &item);
    now->host_ns = simulator_host_ns(simulator);
    now->come_ns = simulator_come_ns(simulator);
    now->called_ns = simulation.host_ns;
    now->waited_ns = simulator_waited_ns(simulator);
    return 0;
}

static int clock_event(uint64_t event, uint64_t *ns)
{
    if (_setjmp(no_memory))
        return -1;
    return simulator_event_ns(simulator, event, ns) ? 0 : -1;
}

static bool clock_behind(uint64_t event)
{
    if (_setjmp(no_memory))
        return false;
    return simulator_is_behind(simulator, event);
}

/* --- who listens ---------------------------------------------------------- */

static void (*activity_put_to)(struct activity *a);

_Static_assert(ACTIVITY_WHOLE == SIM_WHOLE, "the shares of both");

/* As a profiler sees it: a host function is no work of the device's. */
static void on_op(void *context, const struct simulation_op *op)
{
    static const enum activity_copy copies[SIM_ENGINES] = {
        [SIM_COPY_IN] = ACTIVITY_COPY_IN,
        [SIM_COPY_OUT] = ACTIVITY_COPY_OUT,
        [SIM_COPY_PEER] = ACTIVITY_COPY_PEER,
    };
    struct activity a = {
        .what = ACTIVITY_WORK,
        .kind = op->kind,
        .copy = copies[op->price.engine],
        .device = op->device,
        .start_ns = op->done.start_ns,
        .end_ns = op->done.end_ns,
        .call = op->call,
        .stream = op->stream,
        .bytes = op->bytes,
        .fill = op->price.fill,
        .capture = op->capture,
        .name_id = op->kind == OP_ATTENTION ? 0 : op->name,
        .name = work_family_name(op->price.family),
    };

    (void)context;
    memcpy(a.shape, op->shape, sizeof a.shape);
    if (op->kind != OP_HOST_FUNCTION)
        activity_put_to(&a);
}

static void on_call(void *context, const struct simulation_call *call)
{
    struct activity a = {
        .what = ACTIVITY_CALL,
        .kind = call->kind,
        .device = call->device,
        .start_ns = call->start_ns,
        .end_ns = call->end_ns,
        .call = call->number,
        .stream = call->stream,
        .event = call->event,
    };

    (void)context;
    activity_put_to(&a);
}

static void clock_listen(void (*put)(struct activity *a))
{
    static const struct simulation_sink sink = {.op = on_op, .call = on_call};

    activity_put_to = put;
    simulator_listen(simulator, put ? &sink : NULL);
}

static int clock_settle(void)
{
    if (_setjmp(no_memory))
        return -1;
    simulator_settle(simulator);
    return 0;
}

static uint64_t clock_calls(void)
{
    return simulator_calls(simulator);
}

static int clock_offer(bool waiting)
{
    uint64_t host_ns = simulator_host_ns(simulator);

    if (_setjmp(no_memory))
        return -1;
    others_offer(simulator, waiting ? UINT64_MAX : host_ns);
    return 0;
}

static int clock_leave(void)
{
    if (_setjmp(no_memory))
        return -1;
    simulator_drain(simulator);
    return 0;
}

extern CORE_API const struct live_ops memsim_live;
const struct live_ops memsim_live = {
    .open = clock_open,
    .counts_steps = delays_count_steps,
    .factor = clock_factor,
    .take = clock_take,
    .event = clock_event,
    .behind = clock_behind,
    .listen = clock_listen,
    .settle = clock_settle,
    .calls = clock_calls,
    .offer = clock_offer,
    .leave = clock_leave,
};
