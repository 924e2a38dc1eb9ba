/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/size_time.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"

#define DOUBT_MOST 0.1 /* of the device time */

/* An operation of a profile at the three sizes. */
enum { FIRST, SECOND, WANTED, SIZES };

/* What the profiler measured of operation OP; NULL: nothing. */
static struct trace_measured *measured_of(const struct side *side, size_t op)
{
    const struct records *r = &side->records;
    size_t at = side->marks.ops[op];

    return r->imported && at && r->all[at - 1].kind == TRACE_MEASURED
               ? (struct trace_measured *)records_fields(r, &r->all[at - 1])
               : NULL;
}

bool size_time_is_uncalled(const struct side *side, size_t op)
{
    const struct trace_measured *measured = measured_of(side, op);

    return measured && !measured->latency_ns;
}

static uint64_t sum_ns(const struct side *side, size_t op, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = op; i < op + count; i++) {
        const struct trace_measured *measured = measured_of(side, i);
        sum += measured ? measured->duration_ns : 0;
    }
    return sum;
}

static const struct record *record_of(const struct side *side, size_t op)
{
    return &side->records.all[side->marks.ops[op]];
}

/* The prices at the three sizes. Returns false where one is not known. The
 * kernel has one name in all of them. */
static bool prices_find(const struct size_times *t, size_t i, size_t j,
                        const struct size_op *made, double prices[SIZES])
{
    const struct record *record = record_of(t->a, i);
    const uint64_t *first = records_fields(&t->a->records, record);
    uint64_t second[TRACE_FIELDS_MAX];
    const uint64_t *fields[SIZES] = {first, second, made->fields};
    bool known = true;

    memcpy(second,
           records_fields(&t->b->records, record_of(t->b, j)), sizeof second);
    if (record->kind != TRACE_COPY && record->kind != TRACE_SET)
        ((struct trace_work *)second)->name =
            ((const struct trace_work *)first)->name;
    for (unsigned k = 0; k < SIZES; k++) {
        const struct op op = op_of_record(record->kind, fields[k]);
        prices[k] = (double)t->change->price(t->change->context, &op,
                                             &t->a->records.names);
        known = known && prices[k] > 0;
    }
    return known;
}

/* How far the wanted size is from the first one to the second: 0 to 1. */
static double place_of(const struct size_points *p)
{
    double place = log((double)p->wanted / (double)p->first) /
                   log((double)p->second / (double)p->first);

    return fmin(fmax(place, 0), 1);
}

/* By the models; 0: they do not know it. NS: what was measured. */
static uint64_t modelled_time(const struct size_times *t, size_t i, size_t j,
                              const struct size_op *made, const uint64_t ns[2])
{
    double prices[SIZES], place = place_of(t->points);

    if (!t->change->price || made->other || made->law >= SIZE_UNEVEN ||
        !ns[FIRST] || !ns[SECOND] || !prices_find(t, i, j, made, prices))
        return 0;
    double longer = pow((double)ns[FIRST] / prices[FIRST], 1 - place) *
                    pow((double)ns[SECOND] / prices[SECOND], place);
    return (uint64_t)llround(prices[WANTED] * longer);
}

/* --- the same kernels elsewhere ------------------------------------------- */

/* What is known of operations like OP; NULL: nothing. */
static struct size_known *known_of(const struct size_times *t, size_t op)
{
    uintptr_t number =
        (uintptr_t)map_get(&t->doubts->numbers, t->a->marks.marks[op]);

    return number ? &t->doubts->known[number - 1] : NULL;
}

static void known_add(const struct size_times *t, size_t op, uint64_t first_ns,
                      uint64_t wanted_ns)
{
    struct size_doubts *d = t->doubts;
    struct size_known *known = known_of(t, op);

    if (!known) {
        xgrow(&d->known, d->known_count, &d->known_capacity, sizeof *d->known);
        known = &d->known[d->known_count++];
        *known = (struct size_known){0, 0};
        map_put(&d->numbers, t->a->marks.marks[op],
                (void *)(uintptr_t)d->known_count);
    }
    known->first_ns += first_ns;
    known->wanted_ns += wanted_ns;
}

static void doubt_add(const struct size_times *t, size_t op, uint64_t first_ns,
                      uint64_t wanted_ns)
{
    struct size_doubts *d = t->doubts;

    xgrow(&d->all, d->count, &d->capacity, sizeof *d->all);
    d->all[d->count++] = (struct size_doubt){op, first_ns, wanted_ns};
    t->report->doubtful_ns += wanted_ns;
}

static void doubt_settle(const struct size_times *t, const struct size_doubt *d)
{
    struct trace_measured *measured = measured_of(t->a, d->op);
    const struct size_known *known = known_of(t, d->op);

    if (!known || !known->first_ns || !measured)
        return;
    uint64_t wanted = (uint64_t)((double)d->first_ns *
                                 (double)known->wanted_ns /
                                 (double)known->first_ns);
    measured->duration_ns = wanted;
    t->report->device_ns += wanted - d->wanted_ns;
    t->report->doubtful_ns -= d->wanted_ns;
    t->report->times--;
    t->report->modelled++;
}

void size_doubts_fini(struct size_doubts *d)
{
    free(d->all);
    free(d->known);
    map_fini(&d->numbers);
    *d = (struct size_doubts){.all = NULL};
}

/* --- operations ----------------------------------------------------------- */

void size_times_change(const struct size_times *t, size_t i, size_t j,
                       const size_t counts[2], const struct size_op *made)
{
    const uint64_t ns[2] = {sum_ns(t->a, i, counts[0]),
                            sum_ns(t->b, j, counts[1])};
    uint64_t wanted = made ? modelled_time(t, i, j, made, ns) : 0;
    struct sizes_report *report = t->report;
    bool by_model = wanted > 0;

    if (!ns[FIRST])
        return;
    if (!by_model)
        wanted = size_law_estimate(t->points, ns[FIRST], ns[SECOND]);
    if (by_model)
        known_add(t, i, ns[FIRST], wanted);
    else if (made && !size_is_between(t->points))
        doubt_add(t, i, ns[FIRST], wanted);
    report->device_ns += wanted;
    for (size_t op = i; op < i + counts[0]; op++) {
        struct trace_measured *measured = measured_of(t->a, op);
        if (!measured)
            continue;
        measured->duration_ns = (uint64_t)((double)measured->duration_ns *
                                           (double)wanted / (double)ns[FIRST]);
        *(by_model ? &report->modelled : &report->times) += 1;
    }
}

int size_times_settle(const struct size_times *t, struct err *err)
{
    const struct sizes_report *r = t->report;

    for (size_t i = 0; i < t->doubts->count; i++)
        doubt_settle(t, &t->doubts->all[i]);

    double doubt = r->device_ns
                       ? (double)r->doubtful_ns / (double)r->device_ns
                       : 0;

    if (doubt <= DOUBT_MOST)
        return 0;
    return err_set(err,
                   "--change: %s %" PRIu64 " is beyond both profiles, and they "
                   "do not say what the kernels of %.0f%% of the device time "
                   "compute: record them with record_shapes=True, or choose a "
                   "size between the two. `memsim fit' of the profile, and "
                   "`memsim run --fit' of the changed script, go beyond, too",
                   t->change->what, t->points->wanted, 100 * doubt);
}
