/* SPDX-License-Identifier: Apache-2.0
 * Host threads: what they put into queues, and when they wait. */
#include "runtime/sim/sim_internal.h"

#define FIRST_RING 64

/* Each event of a device looks at all of its active streams: where more are, it
 * is run as far as all hosts are. */
#define CROWD 256

uint64_t sim_now(const struct sim *s, uint32_t thread)
{
    return s->threads[thread].now;
}

void sim_spend(struct sim *s, uint32_t thread, uint64_t ns)
{
    s->threads[thread].now = sim_later(s->threads[thread].now, ns);
}

void sim_until(struct sim *s, uint32_t thread, uint64_t ns)
{
    if (s->threads[thread].now < ns)
        s->threads[thread].now = ns;
}

bool sim_waits(const struct sim *s, uint32_t thread)
{
    return s->threads[thread].waits != SIM_FREE;
}

uint64_t sim_woken_by(const struct sim *s, uint32_t thread)
{
    return s->threads[thread].woken_by;
}

/* --- queues --------------------------------------------------------------- */

static int ring_grow(struct sim *s, struct sim_queue *q)
{
    uint32_t wanted = q->capacity ? q->capacity * 2 : FIRST_RING;
    struct sim_op *ring =
        s->memory.grow(s->memory.context, NULL, 0, wanted * sizeof *ring);

    if (!ring)
        return -1;
    for (uint64_t i = q->head; i < q->tail; i++)
        ring[i & (wanted - 1)] = *queue_at(q, i);
    if (q->ring)
        s->memory.grow(s->memory.context, q->ring, q->capacity * sizeof *ring,
                       0);
    q->ring = ring;
    q->capacity = wanted;
    return 0;
}

/* The time before which no host will call. */
static uint64_t hosts_ns(const struct sim *s)
{
    uint64_t least_ns = SIM_NEVER;

    for (uint32_t i = 0; i < s->thread_count; i++)
        if (s->threads[i].waits == SIM_FREE && s->threads[i].now < least_ns)
            least_ns = s->threads[i].now;
    return least_ns;
}

/* After that there is room for as many streams again as are left. */
static void crowd_run(struct sim *s, uint32_t device)
{
    if (s->devices[device].active_count < CROWD ||
        s->devices[device].active_count < s->devices[device].crowd)
        return;
    for (uint64_t until_ns = hosts_ns(s); sim_step(s, until_ns);)
        continue;
    s->devices[device].crowd = 2 * s->devices[device].active_count;
}

/* Puts OP, with what is set here, behind those of STREAM. */
static int queue_put(struct sim *s, uint32_t thread, uint32_t stream,
                     uint32_t latency_ns, const struct sim_op *op)
{
    struct sim_queue *q = &s->streams[stream];
    struct sim_device *d = &s->devices[q->device];

    crowd_run(s, q->device);
    if (q->tail - q->head == q->capacity && ring_grow(s, q))
        return -1;
    struct sim_op *put = queue_at(q, q->tail++);
    *put = *op;
    put->called_ns = sim_later(s->threads[thread].now, latency_ns);
    put->thread = thread;
    put->ordinal = d->submitted++;
    if (op->timed)
        q->last_tag = op->tag;
    return q->tail - q->head == 1 ? device_activate(s, q->device, stream) : 0;
}

static struct sim_op untimed_op(void)
{
    return (struct sim_op){
        .dep_stream = SIM_NONE, .event = SIM_NONE, .meet = SIM_NONE};
}

/* STREAM waits for what OTHER holds now. */
static int wait_for_stream(struct sim *s, uint32_t thread, uint32_t stream,
                           uint32_t other)
{
    struct sim_op op = untimed_op();

    op.dep_stream = other;
    op.dep_sequence = s->streams[other].tail - 1;
    op.tag = s->streams[other].last_tag;
    return queue_put(s, thread, stream, 0, &op);
}

/* The legacy default stream and blocking streams wait for each other. */
static int queue_order(struct sim *s, uint32_t thread, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    const struct sim_device *d = &s->devices[q->device];

    if (q->flags == SIM_NON_BLOCKING || d->legacy == SIM_NONE)
        return 0;
    if (q->flags == SIM_BLOCKING) {
        const struct sim_queue *legacy = &s->streams[d->legacy];
        if (q->legacy_seen == legacy->tail || legacy->head == legacy->tail)
            return 0;
        q->legacy_seen = legacy->tail;
        return wait_for_stream(s, thread, stream, d->legacy);
    }
    for (uint32_t i = 0; i < d->stream_count; i++) {
        struct sim_queue *other = &s->streams[d->streams[i]];
        if (other->flags != SIM_BLOCKING || other->head == other->tail ||
            other->seen_by_legacy == other->tail)
            continue;
        other->seen_by_legacy = other->tail;
        if (wait_for_stream(s, thread, stream, d->streams[i]))
            return -1;
    }
    return 0;
}

/* --- waits ---------------------------------------------------------------- */

static bool host_is_done(const struct sim *s, const struct sim_host *h)
{
    if (h->waits == SIM_FOR_SEQUENCE)
        return s->streams[h->stream].head >= h->until;
    return device_completed(s, &s->devices[h->device]) >= h->until;
}

/* When what H waited for, which is done, was done; the devices may be ahead
 * of the thread. 0: earlier than can be told. */
static uint64_t host_done_ns(const struct sim *s, const struct sim_host *h)
{
    const struct sim_queue *q = &s->streams[h->stream];

    if (h->waits == SIM_FOR_DEVICE)
        return s->devices[h->device].done_ns;
    return q->head == h->until ? q->done_ns : 0;
}

/* THREAD waits, unless that is past already. */
static void host_wait(struct sim *s, uint32_t thread, struct sim_host wait)
{
    struct sim_host *h = &s->threads[thread];

    while (!s->together && sim_step(s, h->now))
        continue;
    wait.now = h->now;
    wait.woken_by = 0;
    *h = wait;
    if (host_is_done(s, h)) {
        sim_until(s, thread, host_done_ns(s, h));
        h->waits = SIM_FREE;
        return;
    }
    h->next_blocked = s->devices[h->device].blocked;
    s->devices[h->device].blocked = thread;
}

void hosts_wake(struct sim *s, struct sim_device *d)
{
    for (uint32_t *at = &d->blocked; *at != SIM_NONE;) {
        struct sim_host *h = &s->threads[*at];
        if (!host_is_done(s, h)) {
            at = &h->next_blocked;
            continue;
        }
        *at = h->next_blocked;
        h->waits = SIM_FREE;
        s->wakes++;
        h->woken_by = h->now <= d->now ? d->last_tag : 0;
        if (h->now < d->now)
            h->now = d->now;
    }
}

static void wait_for_sequence(struct sim *s, uint32_t thread, uint32_t stream,
                              uint64_t until)
{
    host_wait(s, thread,
              (struct sim_host){.waits = SIM_FOR_SEQUENCE,
                                .stream = stream,
                                .device = s->streams[stream].device,
                                .until = until});
}

void sim_together(struct sim *s)
{
    s->together = true;
}

uint64_t sim_wakes(const struct sim *s)
{
    return s->wakes;
}

int sim_settle(struct sim *s, uint32_t thread)
{
    while (s->threads[thread].waits != SIM_FREE)
        if (!sim_step(s, SIM_NEVER))
            return -1;
    return 0;
}

/* --- calls ---------------------------------------------------------------- */

int sim_submit(struct sim *s, uint32_t thread, uint32_t stream,
               const struct sim_work *work)
{
    const uint32_t depth =
        s->devices[s->streams[stream].device].gpu.queue_depth;

    s->threads[thread].woken_by = 0;
    if (sim_waits(s, thread) || queue_order(s, thread, stream) ||
        queue_put(
            s, thread, stream, work->latency_ns,
            &(struct sim_op){.tag = work->tag,
                             .duration_ns = work->duration_ns,
                             .dep_stream = SIM_NONE,
                             .event = SIM_NONE,
                             .share = work->share && work->share < SIM_WHOLE
                                          ? work->share
                                          : SIM_WHOLE,
                             .gap_ns = work->gap_ns,
                             .meet = work->meet,
                             .flow = work->flow,
                             .engine = (uint8_t)work->engine,
                             .link = (uint8_t)work->link,
                             .neighbour = work->neighbour,
                             .apart = work->apart,
                             .timed = true}))
        return -1;
    const struct sim_queue *q = &s->streams[stream];
    if (q->tail - q->head > depth)
        wait_for_sequence(s, thread, stream, q->tail - depth);
    return 0;
}

int sim_record(struct sim *s, uint32_t thread, uint32_t stream, uint32_t event)
{
    struct sim_op op = untimed_op();

    op.event = event;
    if (sim_waits(s, thread) || queue_order(s, thread, stream))
        return -1;
    s->events[event] = (struct sim_event_state){
        .stream = stream,
        .sequence = s->streams[stream].tail,
        .ns = SIM_NEVER,
        .tag = s->streams[stream].last_tag,
    };
    return queue_put(s, thread, stream, 0, &op);
}

int sim_wait_event(struct sim *s, uint32_t thread, uint32_t stream,
                   uint32_t event)
{
    const struct sim_event_state *e = &s->events[event];
    struct sim_op op = untimed_op();

    if (sim_waits(s, thread) || queue_order(s, thread, stream))
        return -1;
    if (e->stream == SIM_NONE)
        return 0; /* never recorded: nothing to wait for */
    op.dep_stream = e->stream;
    op.dep_sequence = e->sequence;
    op.tag = e->tag;
    return queue_put(s, thread, stream, 0, &op);
}

int sim_sync_stream(struct sim *s, uint32_t thread, uint32_t stream)
{
    if (sim_waits(s, thread))
        return -1;
    wait_for_sequence(s, thread, stream, s->streams[stream].tail);
    return 0;
}

int sim_sync_event(struct sim *s, uint32_t thread, uint32_t event)
{
    const struct sim_event_state *e = &s->events[event];

    if (sim_waits(s, thread))
        return -1;
    s->threads[thread].woken_by = 0;
    if (e->stream == SIM_NONE)
        return 0;
    wait_for_sequence(s, thread, e->stream, e->sequence + 1);
    if (!sim_waits(s, thread) && e->ns != SIM_NEVER)
        sim_until(s, thread, e->ns);
    return 0;
}

int sim_sync_device(struct sim *s, uint32_t thread, uint32_t device)
{
    if (sim_waits(s, thread))
        return -1;
    host_wait(s, thread,
              (struct sim_host){.waits = SIM_FOR_DEVICE,
                                .device = device,
                                .until = s->devices[device].submitted});
    return 0;
}

/* Makes room by dropping the marks that were reached. */
static void marks_compact(struct sim_device *d)
{
    uint32_t left = d->mark_count - d->mark_head;

    if (!d->mark_head || (left && d->mark_count < d->mark_capacity))
        return;
    for (uint32_t i = 0; i < left; i++)
        d->marks[i] = d->marks[d->mark_head + i];
    d->mark_head = 0;
    d->mark_count = left;
}

int sim_mark(struct sim *s, uint32_t device, uint64_t ns, uint64_t tag)
{
    struct sim_device *d = &s->devices[device];

    marks_compact(d);
    if (sim_room(s, &d->marks, d->mark_count, &d->mark_capacity,
                 sizeof *d->marks))
        return -1;
    d->marks[d->mark_count++] = (struct sim_mark_entry){d->submitted, ns, tag};
    device_refresh(s, device);
    return 0;
}
