/* SPDX-License-Identifier: Apache-2.0
 * Operations find their calls, and streams their order.
 *
 *   call    ....[launch]...............................
 *   stream  ......latency.[ previous ]h[ op ]..........   h: handover
 *   other   .....................[ after ]h[ op ]......
 *   late    ..............[ previous ]h.....gap.....[ op ]
 *
 * An operation may start when its stream's previous one has ended and its
 * launch has arrived. One that starts later waited for something that the
 * profile does not name. If an operation of another stream of the same GPU
 * ended just before it, that is taken to be what it waited for (op.after). What
 * remains (op.gap_ns) is work that is not in the profile: it is kept as
 * measured, and reported. */
#include "common/base/bisect.h"
#include "memsim/import/profile.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define LATE_NS      5000  /* later than this needs a reason */
#define JUST_BEFORE_NS 10000 /* an end so close to a start is a reason */
#define EXACT_MAX_NS 1000000000 /* of what memsim's export says; more waited */
#define LATENCY_NS   5000  /* where no operation found its stream idle */
#define HANDOVER_NS  1000  /* likewise busy */
/* More than this is no property of the GPU: calls or kernels were dropped. */
#define LATENCY_MAX_NS  50000
#define HANDOVER_MAX_NS 10000

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The median, at most MOST; OTHERWISE where there is none. */
static int64_t median_within(int64_t *values, size_t count, int64_t most,
                             int64_t otherwise)
{
    if (!count)
        return otherwise;
    qsort(values, count, sizeof *values, compare_i64);
    int64_t value = values[count / 2];
    return value <= most ? value : otherwise;
}

/* --- calls ------------------------------------------------------------- */

/* Removes calls that lie inside another of their thread (the driver's inside
 * the runtime's); TO[i] is where call i went. */
static void fold_nested(struct profile *p, uint32_t *to)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->calls_count; i++) {
        struct profile_call *call = &p->calls[i];
        struct profile_thread *thread = &p->threads[call->thread];
        uint32_t last = thread->last;

        if (last != PROFILE_NONE &&
            profile_call_end(call) <= profile_call_end(&p->calls[last])) {
            to[i] = last;
            continue;
        }
        call->previous = last;
        p->calls[kept] = *call;
        thread->last = to[i] = (uint32_t)kept++;
    }
    p->calls_count = kept;
}

static void find_calls(struct profile *p, const struct map *by_correlation)
{
    for (size_t i = 0; i < p->ops_count; i++) {
        struct profile_op *op = &p->ops[i];
        void *known = op->correlation == KINETO_NONE
                          ? NULL
                          : map_get(by_correlation, (uint64_t)op->correlation);

        if (known) {
            op->call = (uint32_t)((uintptr_t)known - 1);
            p->calls[op->call].ops++;
        } else {
            op->launched_ns = KINETO_NONE; /* since an unknown call */
            p->dropped_calls++;
        }
    }
}

/* A GPU's clock that runs behind the host's has operations start before they
 * are launched. */
static void repair_skew(struct profile *p)
{
    int64_t earliest = 0;

    for (size_t i = 0; i < p->ops_count; i++) {
        const struct profile_op *op = &p->ops[i];

        if (op->call == PROFILE_NONE)
            continue;
        int64_t after = op->start_ns - p->calls[op->call].start_ns;
        if (after < earliest)
            earliest = after;
    }
    p->skew_ns = -earliest;
    for (size_t i = 0; earliest && i < p->ops_count; i++)
        p->ops[i].start_ns += p->skew_ns;
}

void profile_link_calls(struct profile *p)
{
    struct map by_correlation = {0};
    uint32_t *to = xcalloc(p->calls_count + 1, sizeof *to);
    int64_t *correlations = xcalloc(p->calls_count + 1, sizeof *correlations);
    size_t count = p->calls_count;

    for (size_t i = 0; i < count; i++)
        correlations[i] = p->calls[i].correlation;
    fold_nested(p, to);
    for (size_t i = 0; i < count; i++)
        if (correlations[i] != KINETO_NONE)
            map_put(&by_correlation, (uint64_t)correlations[i],
                    (void *)(uintptr_t)(to[i] + 1));
    find_calls(p, &by_correlation);
    repair_skew(p);
    map_fini(&by_correlation);
    free(correlations);
    free(to);
}

/* --- streams ----------------------------------------------------------- */

static void order_streams(struct profile *p)
{
    for (size_t i = 0; i < p->ops_count; i++) {
        struct profile_stream *stream = &p->streams[p->ops[i].stream];

        p->ops[i].previous = stream->last;
        stream->last = (uint32_t)i;
    }
}

/* The two medians, from operations that surely waited for nothing else. */
static void measure_latencies(struct profile *p)
{
    int64_t *idle = xcalloc(p->ops_count + 1, sizeof *idle);
    int64_t *busy = xcalloc(p->ops_count + 1, sizeof *busy);
    size_t idles = 0, busies = 0;

    for (size_t i = 0; i < p->ops_count; i++) {
        const struct profile_op *op = &p->ops[i];

        if (op->call == PROFILE_NONE || op->previous == PROFILE_NONE)
            continue;
        int64_t called = p->calls[op->call].start_ns;
        int64_t freed = profile_op_end(&p->ops[op->previous]);
        if (freed < called)
            idle[idles++] = op->start_ns - called;
        else if (freed > called + 4 * LATE_NS && op->start_ns >= freed)
            busy[busies++] = op->start_ns - freed;
    }
    p->latency_ns = median_within(idle, idles, LATENCY_MAX_NS, LATENCY_NS);
    p->handover_ns =
        median_within(busy, busies, HANDOVER_MAX_NS, HANDOVER_NS);
    free(idle);
    free(busy);
}

static int compare_ends(const void *a, const void *b, void *context)
{
    const struct profile *p = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int64_t ex = profile_op_end(&p->ops[x]);
    int64_t ey = profile_op_end(&p->ops[y]);

    return ex != ey ? (ex > ey) - (ex < ey) : (x > y) - (x < y);
}

uint32_t *profile_ends(const struct profile *p)
{
    uint32_t *ends = xcalloc(p->ops_count + 1, sizeof *ends);

    for (size_t i = 0; i < p->ops_count; i++)
        ends[i] = (uint32_t)i;
    qsort_r(ends, p->ops_count, sizeof *ends, compare_ends, (void *)p);
    return ends;
}

/* How many operations ended at or before NS. */
static size_t ended_by(const struct profile *p, const uint32_t *ends,
                       int64_t ns)
{
    return BISECT(i, p->ops_count, profile_op_end(&p->ops[ends[i]]) <= ns);
}

uint32_t profile_op_ended(const struct profile *p, const uint32_t *ends,
                          int64_t after_ns, int64_t until_ns)
{
    size_t n = ended_by(p, ends, until_ns);

    return n && profile_op_end(&p->ops[ends[n - 1]]) > after_ns ? ends[n - 1]
                                                                : PROFILE_NONE;
}

/* An operation of another stream of OP's GPU that ended after READY_NS and just
 * before OP began. */
static uint32_t find_after(const struct profile *p, const uint32_t *ends,
                           const struct profile_op *op, int64_t ready_ns)
{
    int64_t device = p->streams[op->stream].device;
    size_t n = ended_by(p, ends, op->start_ns);

    while (n--) {
        const struct profile_op *other = &p->ops[ends[n]];
        int64_t end = profile_op_end(other);

        if (end <= ready_ns || end < op->start_ns - JUST_BEFORE_NS)
            return PROFILE_NONE;
        if (other->stream != op->stream && other->start_ns < op->start_ns &&
            p->streams[other->stream].device == device)
            return ends[n];
    }
    return PROFILE_NONE;
}

static int64_t clamp_ns(int64_t ns)
{
    return ns < 0 ? 0 : ns > EXACT_MAX_NS ? EXACT_MAX_NS : ns;
}

int64_t profile_op_latency(const struct profile *p, const struct profile_op *op)
{
    int64_t called;

    if (!profile_op_is_exact(op))
        return p->latency_ns;
    called = p->calls[op->call].start_ns;
    return op->launched_ns < called
               ? 0
               : clamp_ns((int64_t)((uint64_t)op->launched_ns -
                                    (uint64_t)called));
}

int64_t profile_op_handover(const struct profile *p,
                            const struct profile_op *op)
{
    return profile_op_is_exact(op) ? clamp_ns(op->handover_ns) : p->handover_ns;
}

/* When OP could have started by what is known. */
static int64_t ready_at(const struct profile *p, const struct profile_op *op)
{
    int64_t ready = INT64_MIN;

    if (op->call != PROFILE_NONE)
        ready = p->calls[op->call].start_ns + profile_op_latency(p, op);
    if (op->previous != PROFILE_NONE) {
        int64_t freed =
            profile_op_end(&p->ops[op->previous]) + profile_op_handover(p, op);

        if (freed > ready)
            ready = freed;
    }
    return ready == INT64_MIN ? op->start_ns : ready;
}

static void explain_start(struct profile *p, const uint32_t *ends,
                          struct profile_op *op)
{
    int64_t ready = ready_at(p, op);
    bool exact = profile_op_is_exact(op);
    int64_t late = exact ? 0 : LATE_NS;

    if (op->start_ns - ready <= late)
        return;
    op->after = find_after(p, ends, op, ready);
    if (op->after != PROFILE_NONE) {
        p->inferred_streams++;
        ready = profile_op_end(&p->ops[op->after]) +
                (exact ? 0 : p->handover_ns);
    }
    if (op->start_ns - ready <= late)
        return;
    op->gap_ns = op->start_ns - ready;
    p->gaps_ns += op->gap_ns;
    p->gaps++;
}

void profile_link_streams(struct profile *p)
{
    order_streams(p);
    measure_latencies(p);
    uint32_t *ends = profile_ends(p);
    for (size_t i = 0; i < p->ops_count; i++)
        explain_start(p, ends, &p->ops[i]);
    free(ends);
}

void profile_link(struct profile *p)
{
    profile_link_calls(p);
    profile_link_streams(p);
    profile_link_hosts(p);
    profile_link_cost(p);
}
