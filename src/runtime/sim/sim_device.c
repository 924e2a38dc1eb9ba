/* SPDX-License-Identifier: Apache-2.0
 * A device: which operations run, how fast, and what happens next. */
#include "runtime/sim/sim_internal.h"

#define CAPACITY_MIN (SIM_WHOLE / 16) /* what compute keeps in any case */

/* --- order of devices ----------------------------------------------------- */

static bool heap_before(const struct sim *s, uint32_t a, uint32_t b)
{
    const struct sim_device *x = &s->devices[a], *y = &s->devices[b];

    return x->next_ns != y->next_ns ? x->next_ns < y->next_ns : a < b;
}

static void heap_set(struct sim *s, uint32_t at, uint32_t device)
{
    s->heap[at] = device;
    s->devices[device].heap_at = at;
}

void device_sift_many(struct sim *s, uint32_t device)
{
    uint32_t at = s->devices[device].heap_at;

    while (at && heap_before(s, device, s->heap[(at - 1) / 2])) {
        heap_set(s, at, s->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (uint32_t child; (child = 2 * at + 1) < s->device_count; at = child) {
        if (child + 1 < s->device_count &&
            heap_before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (heap_before(s, device, s->heap[child]))
            break;
        heap_set(s, at, s->heap[child]);
    }
    heap_set(s, at, device);
}

/* --- order of streams ----------------------------------------------------- */

static bool stream_before(const struct sim *s, uint32_t a, uint32_t b)
{
    int32_t x = s->streams[a].priority, y = s->streams[b].priority;

    return x != y ? x < y : a < b;
}

static bool is_active(const struct sim_device *d, uint32_t stream)
{
    for (uint32_t i = 0; i < d->active_count; i++)
        if (d->active[i] == stream)
            return true;
    return false;
}

static int active_insert(struct sim *s, struct sim_device *d, uint32_t stream)
{
    uint32_t at = d->active_count;

    if (sim_room(s, &d->active, at, &d->active_capacity, sizeof *d->active))
        return -1;
    for (; at && stream_before(s, stream, d->active[at - 1]); at--)
        d->active[at] = d->active[at - 1];
    d->active[at] = stream;
    d->active_count++;
    return 0;
}

int device_activate(struct sim *s, uint32_t device, uint32_t stream)
{
    struct sim_device *d = &s->devices[device];
    struct sim_queue *q = &s->streams[stream];

    if (!is_active(d, stream) && active_insert(s, d, stream))
        return -1;
    q->state = SIM_WAITING;
    q->checked = false;
    uint64_t called_ns = queue_at(q, q->head)->called_ns;
    called_ns = called_ns < d->now ? d->now : called_ns;
    if (d->next_ns > called_ns) {
        d->next_ns = called_ns;
        device_sift(s, device);
    }
    return 0;
}

static void active_compact(const struct sim *s, struct sim_device *d)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < d->active_count; i++)
        if (s->streams[d->active[i]].state != SIM_EMPTY)
            d->active[kept++] = d->active[i];
    d->active_count = kept;
}

uint64_t device_completed(const struct sim *s, const struct sim_device *d)
{
    uint64_t least = d->submitted;

    for (uint32_t i = 0; i < d->active_count; i++) {
        const struct sim_queue *q = &s->streams[d->active[i]];
        if (q->head != q->tail && queue_at(q, q->head)->ordinal < least)
            least = queue_at(q, q->head)->ordinal;
    }
    return least;
}

/* --- speeds --------------------------------------------------------------- */

static bool is_copy(unsigned engine)
{
    return engine >= SIM_COPY_IN && engine <= SIM_COPY_PEER;
}

static uint32_t copies_running(const struct sim_device *d)
{
    return d->busy[SIM_COPY_IN] + d->busy[SIM_COPY_OUT] +
           d->busy[SIM_COPY_PEER];
}

static uint32_t compute_capacity(const struct sim_device *d)
{
    uint32_t capacity = SIM_WHOLE;
    uint32_t taken = (d->busy[SIM_COMM] ? d->gpu.comm_takes : 0) +
                     (copies_running(d) ? d->gpu.copy_takes : 0);

    capacity = taken < capacity ? capacity - taken : 0;
    return capacity < CAPACITY_MIN ? CAPACITY_MIN : capacity;
}

static bool queue_computes(const struct sim_queue *q)
{
    return q->state == SIM_RUNNING &&
           queue_at(q, q->head)->engine == SIM_COMPUTE;
}

/* The shares of those of FIRST's priority that compute; *LAST is behind them.
 */
static uint64_t shares_of(const struct sim *s, const struct sim_device *d,
                          uint32_t first, uint32_t *last)
{
    int32_t priority = s->streams[d->active[first]].priority;
    uint64_t sum = 0;
    uint32_t i = first;

    for (; i < d->active_count; i++) {
        const struct sim_queue *q = &s->streams[d->active[i]];
        if (q->priority != priority)
            break;
        if (queue_computes(q))
            sum += queue_at(q, q->head)->share;
    }
    *last = i;
    return sum;
}

static void set_compute_speeds(struct sim *s, struct sim_device *d)
{
    uint64_t capacity = compute_capacity(d);

    for (uint32_t first = 0, last; first < d->active_count; first = last) {
        uint64_t sum = shares_of(s, d, first, &last);
        uint64_t speed =
            sum > capacity ? SIM_WHOLE * capacity / sum : SIM_WHOLE;
        for (uint32_t i = first; sum && i < last; i++)
            if (queue_computes(&s->streams[d->active[i]]))
                s->streams[d->active[i]].speed = (uint32_t)speed;
        capacity -= sum < capacity ? sum : capacity;
    }
}

/* Whether what computes may be slower than alone. */
static bool computing_is_shared(const struct sim_device *d)
{
    return d->busy[SIM_COMPUTE] > 1 ||
           (d->busy[SIM_COMPUTE] && (d->busy[SIM_COMM] || copies_running(d)));
}

/* Its share of LINK, a link's speed, and of the network behind it. */
static uint32_t comm_speed(const struct sim_device *d,
                           const struct sim_queue *q, uint32_t link)
{
    const struct sim_op *op = queue_at(q, q->head);
    uint32_t speed = link / d->busy_links[op->link];

    if (!op->flow)
        return speed;
    speed = (uint32_t)((uint64_t)speed * q->net_speed / SIM_WHOLE);
    return speed ? speed : 1;
}

static void set_speeds(struct sim *s, struct sim_device *d)
{
    uint32_t link =
        d->busy[SIM_COMPUTE] ? SIM_WHOLE - d->gpu.comm_loses : SIM_WHOLE;

    for (uint32_t i = 0; i < d->active_count; i++) {
        struct sim_queue *q = &s->streams[d->active[i]];
        if (q->state != SIM_RUNNING)
            continue;
        q->speed = queue_at(q, q->head)->engine == SIM_COMM
                       ? comm_speed(d, q, link)
                       : SIM_WHOLE;
    }
    if (computing_is_shared(d))
        set_compute_speeds(s, d);
}

/* --- what comes next ------------------------------------------------------ */

static bool engine_is_free(const struct sim_device *d, const struct sim_op *op)
{
    return !op->timed || !is_copy(op->engine) || !d->busy[op->engine];
}

/* Of the parts of its head in a ns. */
static uint64_t speed_of(const struct sim_queue *q)
{
    uint64_t speed = q->speed >> q->coarse;

    return speed || !q->speed ? speed : 1;
}

/* When something happens to Q's head. */
static uint64_t queue_next(const struct sim_device *d,
                           const struct sim_queue *q)
{
    uint64_t ready_ns = q->ready_ns < d->now ? d->now : q->ready_ns;

    if (q->state == SIM_READY)
        return engine_is_free(d, queue_at(q, q->head)) ? ready_ns : SIM_NEVER;
    if (q->state == SIM_WAITING && !q->checked)
        return d->now;
    if (q->state != SIM_RUNNING || !q->speed)
        return SIM_NEVER;
    uint64_t speed = speed_of(q);
    return sim_later(d->now, (q->left - q->held + speed - 1) / speed);
}

void device_refresh(struct sim *s, uint32_t device)
{
    struct sim_device *d = &s->devices[device];
    uint64_t next_ns = d->stale ? d->now : SIM_NEVER;

    set_speeds(s, d);
    for (uint32_t i = 0; i < d->active_count; i++) {
        uint64_t ns = queue_next(d, &s->streams[d->active[i]]);
        next_ns = ns < next_ns ? ns : next_ns;
    }
    if (d->mark_head < d->mark_count) {
        const struct sim_mark_entry *m = &d->marks[d->mark_head];
        uint64_t ns = m->ns < d->now ? d->now : m->ns;
        if (ns < next_ns && device_completed(s, d) >= m->ordinal)
            next_ns = ns;
    }
    if (next_ns == d->next_ns)
        return;
    d->next_ns = next_ns;
    device_sift(s, device);
}

/* --- progress ------------------------------------------------------------- */

/* Idle: does the host keep every head waiting? */
static bool waits_for_host(const struct sim *s, const struct sim_device *d)
{
    for (uint32_t i = 0; i < d->active_count; i++) {
        const struct sim_queue *q = &s->streams[d->active[i]];
        if (q->state == SIM_READY && q->cause != SIM_BY_HOST)
            return false;
        if (q->state == SIM_RUNNING)
            return false;
    }
    return true;
}

static enum sim_use use_now(const struct sim *s, const struct sim_device *d)
{
    bool runs = d->busy[SIM_COMM] || d->busy[SIM_LATE] || d->finishing;
    bool comm = runs || d->peers_missing;

    if (d->busy[SIM_COMPUTE] && comm)
        return SIM_USE_COMPUTE_COMM;
    if (d->busy[SIM_COMPUTE])
        return copies_running(d) ? SIM_USE_COMPUTE_COPY : SIM_USE_COMPUTE;
    if (runs)
        return SIM_USE_COMM;
    if (comm)
        return d->neighbours_missing ? SIM_USE_BUBBLE : SIM_USE_PEERS;
    if (copies_running(d))
        return SIM_USE_COPY;
    return waits_for_host(s, d) ? SIM_USE_HOST : SIM_USE_IDLE;
}

void device_progress(struct sim *s, struct sim_device *d, uint64_t ns)
{
    uint64_t passed = ns - d->now;

    if (ns <= d->now)
        return;
    d->use_ns[use_now(s, d)] += passed;
    d->now = ns;
    for (uint32_t i = 0; i < d->active_count; i++) {
        struct sim_queue *q = &s->streams[d->active[i]];
        if (q->state != SIM_RUNNING)
            continue;
        uint64_t done = passed * speed_of(q), can = q->left - q->held;
        q->left -= done < can ? done : can;
    }
}

/* --- operations ----------------------------------------------------------- */

/* Heads of other streams that waited for what STREAM has completed. */
static void waiters_release(struct sim *s, uint32_t stream, uint64_t ns)
{
    for (uint32_t *at = &s->streams[stream].waiters; *at != SIM_NONE;) {
        struct sim_queue *q = &s->streams[*at];
        const struct sim_op *op = queue_at(q, q->head);
        if (s->streams[stream].head <= op->dep_sequence) {
            at = &q->next_waiter;
            continue;
        }
        *at = q->next_waiter;
        q->state = SIM_READY;
        q->dep_ns = ns;
        q->ready_ns = op->called_ns > ns ? op->called_ns : ns;
        q->cause = op->called_ns > ns ? SIM_BY_HOST : SIM_BY_EVENT;
        q->cause_tag = op->tag;
        struct sim_device *d = &s->devices[q->device];
        if (d->next_ns > ns) {
            d->next_ns = ns < d->now ? d->now : ns;
            device_sift(s, q->device);
        }
    }
}

static void tell_done(const struct sim *s, uint32_t stream, uint64_t ns)
{
    const struct sim_queue *q = &s->streams[stream];
    const struct sim_op *op = queue_at(q, q->head);

    if (!s->sink.done)
        return;
    s->sink.done(s->sink.context,
                 &(struct sim_done){
                     .tag = op->tag,
                     .device = q->device,
                     .stream = stream,
                     .thread = op->thread,
                     .engine = (enum sim_engine)op->engine,
                     .called_ns = op->called_ns,
                     .ready_ns = q->ready_ns,
                     .start_ns = q->start_ns,
                     .end_ns = ns,
                     .duration_ns = op->duration_ns,
                     .cause = (enum sim_cause)q->cause,
                     .before_tag = q->before_tag,
                     .event_tag = q->event_tag,
                     .cause_tag = q->cause == SIM_BY_HOST ? 0 : q->cause_tag,
                 });
}

/* When a head of work may start, and why not sooner. */
static void head_ready(struct sim_queue *q, const struct sim_op *op)
{
    uint64_t after = q->before_tag || q->free_ns
                         ? sim_later(q->free_ns, op->gap_ns)
                         : 0;

    q->cause = SIM_BY_STREAM;
    q->cause_tag = q->before_tag;
    q->ready_ns = after;
    if (q->dep_ns > after) {
        q->cause = SIM_BY_EVENT;
        q->cause_tag = q->event_tag;
        q->ready_ns = q->dep_ns;
    }
    if (op->called_ns > q->ready_ns) {
        q->cause = SIM_BY_HOST;
        q->ready_ns = op->called_ns;
    }
    q->state = SIM_READY;
}

/* Q has another head, or none. Work waits for nothing but its stream. */
static void head_next(struct sim_queue *q)
{
    const struct sim_op *op = queue_at(q, q->head);
    bool works = q->head != q->tail && op->timed;

    q->checked = works;
    if (works)
        head_ready(q, op);
    else
        q->state = q->head == q->tail ? SIM_EMPTY : SIM_WAITING;
}

/* The head of STREAM is completed. */
static void head_complete(struct sim *s, uint32_t stream, uint64_t ns)
{
    struct sim_queue *q = &s->streams[stream];
    const struct sim_op *op = queue_at(q, q->head);

    if (op->timed) {
        tell_done(s, stream, ns);
        q->free_ns = ns;
        q->before_tag = op->tag;
        q->event_tag = 0;
        s->devices[q->device].last_tag = op->tag;
        s->devices[q->device].engine_tag[op->engine] = op->tag;
    } else if (op->dep_stream != SIM_NONE) {
        q->event_tag = op->tag;
    }
    if (op->event != SIM_NONE && s->events[op->event].stream == stream &&
        s->events[op->event].sequence == q->head)
        s->events[op->event].ns = ns;
    q->done_ns = ns;
    s->devices[q->device].done_ns = ns;
    q->head++;
    head_next(q);
    if (q->waiters != SIM_NONE)
        waiters_release(s, stream, ns);
}

/* A new head: what does it wait for? */
static void head_check(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    const struct sim_op *op = queue_at(q, q->head);

    q->checked = true;
    if (op->timed) {
        head_ready(q, op);
        return;
    }
    if (op->dep_stream != SIM_NONE &&
        s->streams[op->dep_stream].head <= op->dep_sequence) {
        q->next_waiter = s->streams[op->dep_stream].waiters;
        s->streams[op->dep_stream].waiters = stream;
        return;
    }
    q->ready_ns = op->called_ns;
    q->cause = SIM_BY_HOST;
    q->state = SIM_READY;
}

static uint8_t coarse_of(const struct sim_op *op)
{
    return op->duration_ns < SIM_LONG_NS ? 0 : SIM_COARSE;
}

/* PARTS of OP's work. */
static uint64_t work_of(const struct sim_op *op, uint32_t parts)
{
    uint64_t ns = op->duration_ns < SIM_MOST_NS ? op->duration_ns : SIM_MOST_NS;

    return ns * (parts >> coarse_of(op));
}

static void head_run(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    struct sim_device *d = &s->devices[q->device];
    const struct sim_op *op = queue_at(q, q->head);

    q->state = SIM_RUNNING;
    q->speed = SIM_WHOLE;
    d->busy[op->engine]++;
    if (op->engine == SIM_COMM)
        d->busy_links[op->link]++;
    if (op->flow)
        flow_begin(s, stream);
}

static void head_start(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    const struct sim_device *d = &s->devices[q->device];

    q->start_ns = d->now;
    q->left = work_of(queue_at(q, q->head), SIM_WHOLE);
    q->held = 0;
    q->coarse = coarse_of(queue_at(q, q->head));
    head_run(s, stream);
}

static void head_leave(struct sim *s, uint32_t stream)
{
    const struct sim_queue *q = &s->streams[stream];
    struct sim_device *d = &s->devices[q->device];
    const struct sim_op *op = queue_at(q, q->head);

    if (op->flow)
        flow_end(s, stream);
    d->busy[op->engine]--;
    if (op->engine == SIM_COMM)
        d->busy_links[op->link]--;
}

/* OP's peers are missing, or, where COUNT is -1, no more. */
static void peers_count(struct sim_device *d, const struct sim_op *op,
                        int count)
{
    d->peers_missing += (uint32_t)count;
    if (op->neighbour)
        d->neighbours_missing += (uint32_t)count;
}

/* All have come: they start together. */
static void group_start(struct sim *s, struct sim_group *g, uint64_t ns,
                        uint64_t by_tag)
{
    for (uint32_t m = g->members; m != SIM_NONE;
         m = s->streams[m].next_member) {
        struct sim_queue *q = &s->streams[m];
        struct sim_device *d = &s->devices[q->device];
        device_progress(s, d, ns);
        peers_count(d, queue_at(q, q->head), -1);
        if (q->ready_ns < ns) {
            q->cause = SIM_BY_PEER;
            q->cause_tag = by_tag;
        }
        head_start(s, m);
        device_refresh(s, q->device);
    }
}

/* One that GROUP's only member exchanges with has come; PART of the work is
 * with it. */
static void group_release(struct sim *s, uint32_t group, uint32_t part,
                          uint64_t ns, uint64_t by_tag)
{
    struct sim_group *g = &s->groups[group];
    struct sim_queue *q = &s->streams[g->members];
    struct sim_device *d = &s->devices[q->device];
    const struct sim_op *op = queue_at(q, q->head);

    device_progress(s, d, ns);
    g->held -= part;
    q->held = work_of(op, g->held);
    if (q->state == SIM_ARRIVED) {
        peers_count(d, op, -1);
        if (q->left == work_of(op, SIM_WHOLE)) { /* the first one */
            q->start_ns = ns;
            q->cause = SIM_BY_PEER;
            q->cause_tag = by_tag;
        }
        head_run(s, g->members);
    }
    device_refresh(s, q->device);
}

/* STREAM's head, which has come, and those that it exchanges with. */
static void pairs_release(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    const struct sim_op *op = queue_at(q, q->head);
    struct sim_group *g = &s->groups[op->meet];

    for (uint32_t i = g->pairs; i != SIM_NONE; i = s->pairs[i].next) {
        const struct sim_pair *p = &s->pairs[i];
        if (!s->groups[p->other].arrived)
            continue;
        g->held -= p->part;
        group_release(s, p->other, p->other_part, s->devices[q->device].now,
                      op->tag);
    }
    q->held = work_of(op, g->held);
}

static void head_arrive(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    const struct sim_op *op = queue_at(q, q->head);
    struct sim_group *g = &s->groups[op->meet];
    struct sim_device *d = &s->devices[q->device];

    q->state = SIM_ARRIVED;
    q->next_member = g->members;
    g->members = stream;
    g->apart = op->apart;
    peers_count(d, op, 1);
    bool all = ++g->arrived == g->expected;
    if (all)
        group_start(s, g, d->now, op->tag);
    if (all && g->pairs != SIM_NONE)
        pairs_release(s, stream);
    if (g->others)
        others_tell_came(s, op->meet, d->now);
}

static void group_complete(struct sim *s, uint32_t group, uint64_t ns)
{
    struct sim_group *g = &s->groups[group];

    for (uint32_t i = g->pairs, next; i != SIM_NONE; i = next) {
        next = s->pairs[i].next;
        if (g->others)
            others_forget(s, s->pairs[i].other);
        s->pairs[i].next = s->free_pair;
        s->free_pair = i;
    }
    g->next_free = s->free_group;
    s->free_group = group;
    for (uint32_t m = g->apart ? SIM_NONE : g->members, next; m != SIM_NONE;
         m = next) {
        struct sim_queue *q = &s->streams[m];
        struct sim_device *d = &s->devices[q->device];
        next = q->next_member;
        device_progress(s, d, ns);
        d->finishing--;
        head_complete(s, m, ns);
        d->stale = true;
        device_refresh(s, q->device);
    }
}

static void head_finish(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    const struct sim_op *op = queue_at(q, q->head);
    struct sim_device *d = &s->devices[q->device];
    uint32_t meet = op->meet;

    head_leave(s, stream);
    if (meet != SIM_NONE && s->groups[meet].held) { /* for now */
        q->state = SIM_ARRIVED;
        peers_count(d, op, 1);
        return;
    }
    if (meet == SIM_NONE || op->apart) {
        head_complete(s, stream, d->now);
    } else {
        q->state = SIM_FINISHED;
        d->finishing++;
    }
    if (meet == SIM_NONE)
        return;
    if (++s->groups[meet].finished == s->groups[meet].expected)
        group_complete(s, meet, d->now);
    else if (s->groups[meet].others)
        others_tell_ended(s, meet, d->now);
}

/* --- members elsewhere ---------------------------------------------------- */

/* The device of GROUP's own member is at NS, or was there before: when it is
 * now. */
static uint64_t group_now(struct sim *s, uint32_t group, uint64_t ns)
{
    uint32_t device = s->streams[s->groups[group].members].device;

    return ns > s->devices[device].now ? ns : s->devices[device].now;
}

void group_begin(struct sim *s, uint32_t group, uint64_t ns)
{
    struct sim_group *g = &s->groups[group];

    g->arrived = g->expected;
    group_start(s, g, group_now(s, group, ns), 0);
}

void group_finish(struct sim *s, uint32_t group, uint64_t ns)
{
    s->groups[group].finished = s->groups[group].expected;
    group_complete(s, group, group_now(s, group, ns));
}

void group_meet(struct sim *s, uint32_t other, uint64_t ns)
{
    const struct sim_pair *p = &s->pairs[s->groups[other].pairs];

    s->groups[other].arrived = 1;
    group_release(s, p->other, p->other_part, group_now(s, p->other, ns), 0);
}

/* Is STREAM's head the one that its copy engine takes now? */
static bool is_next_copy(const struct sim *s, const struct sim_device *d,
                         uint32_t stream)
{
    const struct sim_queue *q = &s->streams[stream];
    unsigned engine = queue_at(q, q->head)->engine;

    for (uint32_t i = 0; i < d->active_count; i++) {
        const struct sim_queue *o = &s->streams[d->active[i]];
        if (o->state != SIM_READY || o->priority != q->priority ||
            !queue_at(o, o->head)->timed ||
            queue_at(o, o->head)->engine != engine)
            continue;
        if (o->ready_ns < q->ready_ns)
            return false;
    }
    return true;
}

/* Starts STREAM's head where it can. Returns whether a head may pass now. */
static bool head_try(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    struct sim_device *d = &s->devices[q->device];
    const struct sim_op *op = queue_at(q, q->head);

    if (q->state != SIM_READY || q->ready_ns > d->now || !op->timed)
        return false;
    if (op->meet != SIM_NONE) {
        head_arrive(s, stream);
        return true;
    }
    if (is_copy(op->engine) &&
        (d->busy[op->engine] || !is_next_copy(s, d, stream)))
        return false;
    if (is_copy(op->engine) && q->ready_ns < d->now) {
        q->cause = SIM_BY_ENGINE;
        q->cause_tag = d->engine_tag[op->engine];
    }
    head_start(s, stream);
    return !q->left;
}

/* Ends STREAM's head, or sees what the next one waits for. Returns whether
 * something has happened after which a head may pass that did not before. */
static bool head_pass(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    struct sim_device *d = &s->devices[q->device];
    bool alone;

    switch ((enum sim_state)q->state) {
    case SIM_WAITING:
        if (q->checked)
            return false;
        head_check(s, stream);
        return true;
    case SIM_READY:
        if (q->ready_ns > d->now || queue_at(q, q->head)->timed)
            return false;
        head_complete(s, stream, d->now);
        return true;
    case SIM_RUNNING:
        if (q->left > q->held)
            return false;
        alone = q->waiters == SIM_NONE &&
                queue_at(q, q->head)->meet == SIM_NONE;
        head_finish(s, stream);
        return !alone || q->state == SIM_WAITING;
    default:
        return false;
    }
}

static void marks_tell(struct sim *s, uint32_t device)
{
    struct sim_device *d = &s->devices[device];

    for (; d->mark_head < d->mark_count; d->mark_head++) {
        const struct sim_mark_entry *m = &d->marks[d->mark_head];
        if (m->ns > d->now || device_completed(s, d) < m->ordinal)
            return;
        struct sim_marked marked = {
            .tag = m->tag, .device = device, .ns = d->now};
        for (int i = 0; i < SIM_USES; i++)
            marked.use_ns[i] = d->use_ns[i];
        if (s->sink.marked)
            s->sink.marked(s->sink.context, &marked);
    }
}

/* All that ends now ends before anything starts, so that what is ready at one
 * time starts in one order. */
static void device_pass(struct sim *s, struct sim_device *d)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < d->active_count; i++)
            changed |= head_pass(s, d->active[i]);
    }
}

static bool device_start(struct sim *s, struct sim_device *d)
{
    bool changed = false;

    for (uint32_t i = 0; i < d->active_count; i++)
        changed |= head_try(s, d->active[i]);
    return changed;
}

/* --- one stream that computes --------------------------------------------- */

/* Is it work that nothing beside it can slow down or hold? */
static bool is_plain(const struct sim_op *op)
{
    return op->timed && op->engine == SIM_COMPUTE && op->meet == SIM_NONE;
}

/* D's next event, of the head of Q that computes alone. */
static uint64_t alone_next(const struct sim_device *d,
                           const struct sim_queue *q)
{
    if (q->state == SIM_EMPTY)
        return SIM_NEVER;
    if (q->state == SIM_READY)
        return q->ready_ns;
    uint64_t speed = speed_of(q);
    return sim_later(d->now, (q->left + speed - 1) / speed);
}

/* What device_run does where D has one stream and that computes, in a third of
 * its instructions: most of a program's events are of this kind. Returns false
 * where something else remains to be done at this time. */
static bool device_run_alone(struct sim *s, struct sim_device *d)
{
    uint32_t stream = d->active[0];
    struct sim_queue *q = &s->streams[stream];

    if (d->stale || d->mark_head < d->mark_count || d->blocked != SIM_NONE ||
        !is_plain(queue_at(q, q->head)))
        return false;
    if (q->state == SIM_WAITING) {
        head_check(s, stream);
    } else if (q->state == SIM_RUNNING) {
        if (q->left)
            return false;
        head_leave(s, stream);
        head_complete(s, stream, d->now);
        if (q->state != SIM_EMPTY &&
            (q->state != SIM_READY || !is_plain(queue_at(q, q->head))))
            return false;
    }
    if (q->state == SIM_READY && q->ready_ns <= d->now) {
        head_start(s, stream);
        if (!q->left)
            return false;
    }
    d->active_count = q->state != SIM_EMPTY;
    d->next_ns = alone_next(d, q);
    return true;
}

void device_run(struct sim *s, uint32_t device)
{
    struct sim_device *d = &s->devices[device];

    device_progress(s, d, d->next_ns);
    if (d->active_count == 1 && device_run_alone(s, d)) {
        device_sift(s, device);
        return;
    }
    do {
        device_pass(s, d);
    } while (device_start(s, d));
    d->stale = false;
    active_compact(s, d);
    if (d->mark_head < d->mark_count)
        marks_tell(s, device);
    if (d->blocked != SIM_NONE)
        hosts_wake(s, d);
    device_refresh(s, device);
}
