/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/series.h"
#include "common/base/xmalloc.h"
#include "fits/machine.h"
#include "runtime/nccl/fit_curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The median of P's samples; of single ranks' times the least, which waited
 * for nobody. */
static double point_us(struct bench_point *p)
{
    bench_sort_values(p->us, p->kept);
    if (p->by_rank)
        return p->us[0];
    if (p->kept % 2)
        return p->us[p->kept / 2];
    return sqrt(p->us[p->kept / 2 - 1] * p->us[p->kept / 2]);
}

static bool same_series(const struct bench_point *a,
                        const struct bench_point *b)
{
    return a->coll == b->coll && a->gpus == b->gpus && a->nodes == b->nodes;
}

/* Sizes while they are being gathered; a series holds only SERIES_SIZES. */
struct sizes {
    size_t count, capacity;
    struct series_point *items;
};

static struct series_point *size_at(struct sizes *sizes, double bytes)
{
    if (sizes->count && sizes->items[sizes->count - 1].bytes == bytes)
        return &sizes->items[sizes->count - 1];
    xgrow(&sizes->items, sizes->count, &sizes->capacity, sizeof *sizes->items);
    sizes->items[sizes->count] = (struct series_point){.bytes = bytes};
    return &sizes->items[sizes->count++];
}

/* Points come by size, then placement, then means before single ranks. */
static void gather_point(struct sizes *sizes, struct bench_point *p)
{
    struct series_point *at = size_at(sizes, (double)p->bytes);

    if (at->measured[p->in_place]) /* a mean is there: means are what we fit */
        return;
    at->us[p->in_place] = point_us(p);
    at->measured[p->in_place] = true;
}

static void fill_placements(struct series_point *p)
{
    if (!p->measured[0])
        p->us[0] = p->us[1];
    if (!p->measured[1])
        p->us[1] = p->us[0];
    memcpy(p->raw_us, p->us, sizeof p->raw_us);
}

/* The geometric mean of COUNT neighbouring points. */
static struct series_point mean_point(const struct series_point *p,
                                      size_t count)
{
    struct series_point mean = p[0];
    double bytes = 0, us[2] = {0, 0};

    for (size_t i = 0; i < count; i++) {
        bytes += log(p[i].bytes);
        for (int j = 0; j < 2; j++) {
            us[j] += log(p[i].us[j]);
            mean.measured[j] |= p[i].measured[j];
        }
    }
    mean.bytes = exp(bytes / (double)count);
    for (int j = 0; j < 2; j++)
        mean.us[j] = mean.raw_us[j] = exp(us[j] / (double)count);
    return count == 1 ? p[0] : mean;
}

static void store_sizes(struct series *s, const struct sizes *sizes)
{
    const struct series_point *p = sizes->items;
    double first = log(p[0].bytes), last = log(p[sizes->count - 1].bytes);

    if (sizes->count <= SERIES_SIZES) {
        memcpy(s->points, p, sizes->count * sizeof *p);
        s->count = (uint32_t)sizes->count;
        return;
    }
    for (size_t i = 0, end; i < sizes->count; i = end) {
        double bin = floor((log(p[i].bytes) - first) / (last - first) *
                           (SERIES_SIZES - 1));

        for (end = i + 1; end < sizes->count; end++)
            if (floor((log(p[end].bytes) - first) / (last - first) *
                      (SERIES_SIZES - 1)) != bin)
                break;
        s->points[s->count++] = mean_point(p + i, end - i);
    }
}

static struct series *series_add(struct series_set *set,
                                 const struct bench_point *p)
{
    struct series_family *f =
        set->count ? &set->families[set->count - 1] : NULL;

    if (!f || f->coll != p->coll || f->gpus != p->gpus) {
        set->families =
            xreallocarray(set->families, set->count + 1, sizeof *set->families);
        f = &set->families[set->count++];
        *f = (struct series_family){.coll = p->coll, .gpus = p->gpus};
    }
    f->series = xreallocarray(f->series, f->count + 1, sizeof *f->series);
    struct series *s = &f->series[f->count++];
    memset(s, 0, sizeof *s);
    s->coll = p->coll;
    s->nodes = p->nodes;
    s->gpus = p->gpus;
    return s;
}

static void make_one(struct bench *b, struct sizes *sizes,
                     const struct bench_point *first, struct series_set *set)
{
    char text[80];

    for (size_t i = 0; i < sizes->count; i++)
        fill_placements(&sizes->items[i]);
    if (sizes->count > 1) {
        store_sizes(series_add(set, first), sizes);
        return;
    }
    snprintf(text, sizeof text, "%s, %u x %u GPUs, %.0f bytes",
             fit_coll_name(first->coll), first->nodes, first->gpus,
             sizes->items[0].bytes);
    bench_drop(b, BENCH_ALONE, "all files", 0, text);
}

void series_make(struct bench *b, struct series_set *set)
{
    struct sizes sizes = {0};

    *set = (struct series_set){0};
    machine_find(b->gpu, &set->machine);
    for (size_t i = 0, end; i < b->point_count; i = end) {
        sizes.count = 0;
        for (end = i; end < b->point_count &&
                      same_series(&b->points[i], &b->points[end]);
             end++)
            gather_point(&sizes, &b->points[end]);
        make_one(b, &sizes, &b->points[i], set);
    }
    free(sizes.items);
}

static void take_curve(const struct fit_curve *c, struct series *s)
{
    double bytes = c->bytes_min;

    for (uint32_t i = 0; i < SERIES_SIZES; i++, bytes *= 2) {
        if (c->knot_count ? i >= c->knot_count : bytes > c->bytes_max)
            break;
        struct series_point *p = &s->points[s->count++];
        p->bytes = c->knot_count ? c->knots[i].bytes : bytes;
        for (int place = 0; place < 2; place++) {
            p->us[place] = fit_curve_us(c, p->bytes, place);
            p->raw_us[place] = p->us[place];
            p->measured[place] = true;
        }
    }
}

void series_of_fit(const struct fit *fit, struct series_set *set)
{
    *set = (struct series_set){
        .machine = fit->machine,
        .count = fit->family_count,
        .families = xcalloc(fit->family_count + 1, sizeof *set->families),
    };
    for (uint32_t i = 0; i < fit->family_count; i++) {
        const struct fit_family *f = &fit->families[i];

        set->families[i] = (struct series_family){
            .coll = f->coll,
            .gpus = f->gpus_per_node,
            .count = f->curve_count,
            .series = xcalloc(f->curve_count, sizeof(struct series)),
        };
        for (uint32_t j = 0; j < f->curve_count; j++) {
            struct series *s = &set->families[i].series[j];

            s->coll = f->coll;
            s->gpus = f->gpus_per_node;
            s->nodes = f->curves[j].nodes;
            take_curve(&f->curves[j], s);
        }
    }
}

void series_fini(struct series_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        free(set->families[i].series);
    free(set->families);
}

void series_copy(const struct series_set *set, series_leave_out *leave_out,
                 const void *arg, struct series_set *copy)
{
    *copy = (struct series_set){
        .machine = set->machine,
        .draft = true,
        .families = xcalloc(set->count + 1, sizeof *copy->families),
    };
    for (uint32_t i = 0; i < set->count; i++) {
        const struct series_family *from = &set->families[i];
        struct series_family *to = &copy->families[copy->count];

        *to = *from;
        to->count = 0;
        to->series = xcalloc(from->count, sizeof *to->series);
        for (uint32_t j = 0; j < from->count; j++) {
            struct series *s = &to->series[to->count];

            *s = from->series[j];
            s->count = 0;
            for (uint32_t k = 0; k < from->series[j].count; k++)
                if (!leave_out(&from->series[j], k, arg))
                    s->points[s->count++] = from->series[j].points[k];
            if (s->count < from->series[j].count)
                s->known = NULL;
            to->count += s->count > 1;
        }
        if (to->count)
            copy->count++;
        else
            free(to->series);
    }
}
