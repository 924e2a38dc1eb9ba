/* SPDX-License-Identifier: Apache-2.0
 * Single points that no model should follow: a first row that was still
 * warming up, a run that something disturbed. Regions of slow sizes (protocol
 * switches) are not touched. */
#include "commfit/series.h"
#include "common/base/xmalloc.h"

#include <math.h>

/* The two samples of a point differ by 1.3% in the median, 10% at the 90th
 * percentile: where it is more than this, one of them was disturbed. */
#define PAIR_RATIO 1.35

/* A size slower than its neighbours' line by this factor, alone. Lower factors
 * cost more at true switches than they gain at spikes:
 * doc/evidence/commfit.md. */
#define SPIKE_RATIO 3.0

static double between_us(const struct series_point *a,
                         const struct series_point *b, double bytes, int place)
{
    double w = (bytes - a->bytes) / (b->bytes - a->bytes);

    return a->us[place] + w * (b->us[place] - a->us[place]);
}

static void note_outlier(struct outliers *list, const struct series *s,
                         uint32_t i, int place, double expected_us)
{
    if (!list)
        return;
    xgrow(&list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = (struct outlier){
        .coll = s->coll,
        .nodes = s->nodes,
        .gpus = s->gpus,
        .bytes = s->points[i].bytes,
        .in_place = place,
        .us = s->points[i].raw_us[place],
        .expected_us = expected_us,
    };
}

/* What the neighbours of point I suggest: the lower sample of each. */
static double neighbours_us(const struct series *s, uint32_t i)
{
    double sum = 0;
    int count = 0;

    for (int step = -1; step <= 1; step += 2) {
        int64_t j = (int64_t)i + step;

        if (j < 0 || j >= s->count)
            continue;
        sum += log(fmin(s->points[j].raw_us[0], s->points[j].raw_us[1]));
        count++;
    }
    return exp(sum / count);
}

/* Of two samples that contradict each other, the one further from the
 * neighbours is replaced by the other. */
static void clean_pairs(struct series *s, struct outliers *list)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct series_point *p = &s->points[i];
        double ratio = p->raw_us[1] / p->raw_us[0];

        if (ratio < PAIR_RATIO && ratio > 1 / PAIR_RATIO)
            continue;
        double around = log(neighbours_us(s, i));
        int odd =
            fabs(log(p->raw_us[1]) - around) > fabs(log(p->raw_us[0]) - around);
        p->us[odd] = p->raw_us[!odd];
        note_outlier(list, s, i, odd, p->us[odd]);
    }
}

static void clean_spikes(struct series *s, struct outliers *list)
{
    for (uint32_t i = 1; i + 1 < s->count; i++)
        for (int place = 0; place < 2; place++) {
            struct series_point *p = &s->points[i];
            double expected = between_us(p - 1, p + 1, p->bytes, place);

            if (p->us[place] < SPIKE_RATIO * expected)
                continue;
            p->us[place] = expected;
            note_outlier(list, s, i, place, expected);
        }
}

/* Times that fall from one size to the next by more than this, in both samples,
 * do so: NCCL changes its protocol there. */
#define FALL 1.03

static bool point_falls(const struct series_point *p)
{
    return p[0].measured[0] && p[0].measured[1] && p[1].measured[0] &&
           p[1].measured[1] && p[0].us[0] > FALL * p[1].us[0] &&
           p[0].us[1] > FALL * p[1].us[1];
}

/* A run of sizes with one time. */
struct run {
    uint32_t from, count;
    double sum; /* of the times' logarithms */
};

static double run_mean(const struct run *r)
{
    return r->sum / r->count;
}

/* A larger size takes no less time, unless the data proves it: runs of sizes
 * that are out of order get their geometric mean (pool adjacent violators). */
static void order_sizes(struct series *s, int place)
{
    struct run runs[SERIES_SIZES];
    uint32_t count = 0, wall = 0; /* runs before WALL stay as they are */

    for (uint32_t i = 0; i < s->count; i++) {
        if (i && point_falls(&s->points[i - 1]))
            wall = count;
        runs[count++] = (struct run){i, 1, log(s->points[i].us[place])};
        while (count > wall + 1 &&
               run_mean(&runs[count - 2]) > run_mean(&runs[count - 1])) {
            runs[count - 2].count += runs[count - 1].count;
            runs[count - 2].sum += runs[count - 1].sum;
            count--;
        }
    }
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t i = 0; runs[r].count > 1 && i < runs[r].count; i++)
            s->points[runs[r].from + i].us[place] = exp(run_mean(&runs[r]));
}

/* Both placements are judged by what was measured, before either is changed. */
static void order_series(struct series *s)
{
    struct series ordered = *s;

    for (int place = 0; place < 2; place++) {
        order_sizes(s, place);
        for (uint32_t i = 0; i < s->count; i++) {
            double us = s->points[i].us[place];

            s->points[i].us[place] = ordered.points[i].us[place];
            ordered.points[i].us[place] = us;
        }
    }
    *s = ordered;
}

void series_clean(struct series_set *set, struct outliers *list)
{
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t j = 0; j < set->families[i].count; j++) {
            clean_pairs(&set->families[i].series[j], list);
            clean_spikes(&set->families[i].series[j], list);
            order_series(&set->families[i].series[j]);
        }
}
