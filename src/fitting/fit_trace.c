/* SPDX-License-Identifier: Apache-2.0 */
#include "fitting/fit_trace.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/simulated.h"
#include "common/base/xmalloc.h"
#include "fitting/fit_jobs.h"
#include "runtime/cost/cost_features.h"

#define SPREAD_MOST 1.5 /* the 90th over the 10th percentile of a launch's
                           times; the largest over the least of a name's */
#define ROWS_MAX    200000

/* --- keys ----------------------------------------------------------------- */

static uint64_t launch_key(const struct trace_ops *ops, size_t i)
{
    const struct trace_kernel *k = &ops->kernels[i];

    if (!k->grid[0])
        return 0; /* a library's call */
    return cost_kernel_key(hash_text(HASH_START, ops->names[k->name]), k->grid,
                           k->block);
}

static uint64_t name_key(const struct trace_ops *ops, size_t i)
{
    return cost_name_key(
        hash_text(HASH_START, ops->names[ops->kernels[i].name]));
}

static uint64_t product_key(const struct trace_ops *ops, size_t i)
{
    const struct trace_kernel *k = &ops->kernels[i];

    return k->known ? cost_shape_key(&k->work) : 0;
}

/* --- what recurs ---------------------------------------------------------- */

struct time {
    uint64_t key;
    double ns;
    size_t kernel;
};

static int compare_times(const void *a, const void *b)
{
    const struct time *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->kernel < y->kernel ? -1 : x->kernel > y->kernel;
}

/* The times of one key, ascending. */
static struct fit_measured measured_of(const struct time *times, size_t count)
{
    double low = times[count / 10].ns, high = times[count - 1 - count / 10].ns;

    return (struct fit_measured){.key = times->key,
                                 .kernel = times->kernel,
                                 .ns = times[count / 2].ns,
                                 .count = count,
                                 .spread = high > SPREAD_MOST * low};
}

static struct fit_measured *
measure_ops(const struct trace_ops *ops,
            uint64_t (*key)(const struct trace_ops *ops, size_t i), bool of_op,
            size_t *count)
{
    struct time *times = xcalloc(ops->count + 1, sizeof *times);
    struct fit_measured *list = xcalloc(ops->count + 1, sizeof *list);
    size_t n = 0;

    for (size_t i = 0; i < ops->count; i++) {
        const struct trace_kernel *k = &ops->kernels[i];
        times[n] = (struct time){key(ops, i), of_op ? k->op_ns : k->ns, i};
        n += times[n].key != 0;
    }
    qsort(times, n, sizeof *times, compare_times);
    *count = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && times[end].key == times[i].key; end++)
            continue;
        list[(*count)++] = measured_of(&times[i], end - i);
    }
    free(times);
    return list;
}

/* --- corrections ---------------------------------------------------------- */

/* A launch of which several may be the same, and what the models say of it. */
struct ratio {
    uint32_t name;
    enum work_family family;
    struct job_ratio of; /* its value is measured over predicted time */
};

struct ratios {
    struct ratio *all;
    size_t count;
};

/* Of launches with (KNOWN) or without a description, each counted once. */
static struct ratios ratios_make(const struct fit_trace *fit, bool known,
                                 const uint32_t *jobs,
                                 const struct cost_gpu *limits,
                                 const struct cost_image *image)
{
    struct ratios r = {xcalloc(fit->launch_count + 1, sizeof *r.all), 0};

    for (size_t i = 0; i < fit->launch_count; i++) {
        const struct trace_kernel *k =
            &fit->ops->kernels[fit->launches[i].kernel];
        struct cost_answer answer;
        if (k->known != known || k->work.family == WORK_NOTHING)
            continue;
        cost_price(image, limits, &k->work, &answer);
        double ns = known ? k->op_ns : fit->launches[i].ns;
        if (answer.ns && answer.basis != COST_MEASURED)
            r.all[r.count++] =
                (struct ratio){k->name, k->work.family,
                               {jobs[k->trace], ns, ns / (double)answer.ns}};
    }
    return r;
}

static int compare_ratios(const void *a, const void *b)
{
    const struct ratio *x = a, *y = b;

    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return (x->of.value > y->of.value) - (x->of.value < y->of.value);
}

/* Of a name whose times follow its grid: seen on two grids at least, and off by
 * about the same on each. */
static void fit_names(struct fit_trace *fit, struct ratios *r)
{
    fit->names = xcalloc(r->count + 1, sizeof *fit->names);
    qsort(r->all, r->count, sizeof *r->all, compare_ratios);
    for (size_t i = 0, end; i < r->count; i = end) {
        for (end = i + 1; end < r->count && r->all[end].name == r->all[i].name;
             end++)
            continue;
        if (end - i > 1 &&
            r->all[end - 1].of.value <= SPREAD_MOST * r->all[i].of.value)
            fit->names[fit->name_count++] = (struct fit_name){
                r->all[i].name, r->all[(i + end) / 2].of.value};
    }
}

/* By how much the models are off for other jobs than the JOBS of ALL. */
static struct cost_scale scale_of(struct job_ratio *all, size_t count,
                                  uint32_t jobs)
{
    double factor = fit_jobs_factor(all, count, jobs);

    if (!(factor > 0))
        return (struct cost_scale){.factor = 0};
    return (struct cost_scale){
        .factor = factor,
        .low = fmin(1, all[count / 10].value / factor),
        .high = fmax(1, all[count - 1 - count / 10].value / factor)};
}

static void fit_family(struct fit_trace *fit, enum work_family family,
                       const struct ratios *r, uint32_t jobs)
{
    struct fit_scaled *f = &fit->families[family];
    struct job_ratio *all = xcalloc(r->count + 1, sizeof *all);

    for (size_t i = 0; i < r->count; i++)
        if (r->all[i].family == family)
            all[f->kernels++] = r->all[i].of;
    f->scale = scale_of(all, f->kernels, jobs);
    free(all);
}

/* The jobs of the traces; to be freed. */
static uint32_t *find_jobs(struct fit_trace *fit)
{
    const struct trace_ops *ops = fit->ops;
    uint64_t *keys = xcalloc(ops->count + 1, sizeof *keys);

    for (size_t i = 0; i < ops->count; i++)
        keys[i] = launch_key(ops, i);
    uint32_t *jobs = fit_jobs_make(ops, keys, &fit->jobs);
    free(keys);
    return jobs;
}

void fit_trace_run(struct fit_trace *fit, const struct trace_ops *ops,
                   const char *gpu, const struct cost_gpu *limits,
                   const struct cost_image *image)
{
    *fit = (struct fit_trace){.ops = ops};
    snprintf(fit->gpu, sizeof fit->gpu, "%s", gpu);
    fit->launches = measure_ops(ops, launch_key, false, &fit->launch_count);
    fit->products = measure_ops(ops, product_key, true, &fit->product_count);
    uint32_t *jobs = find_jobs(fit);
    struct ratios known = ratios_make(fit, true, jobs, limits, image);
    struct ratios others = ratios_make(fit, false, jobs, limits, image);
    for (int family = WORK_NOTHING + 1; family < WORK_FAMILIES; family++)
        fit_family(fit, (enum work_family)family, &known, fit->jobs);
    fit_names(fit, &others);
    free(jobs);
    free(known.all);
    free(others.all);
}

void fit_trace_fini(struct fit_trace *fit)
{
    free(fit->launches);
    free(fit->products);
    free(fit->names);
    *fit = (struct fit_trace){.ops = NULL};
}

/* --- writing -------------------------------------------------------------- */

static void put_text(FILE *out, const char *text)
{
    cJSON *string = cJSON_CreateString(text);
    char *printed = cJSON_PrintUnformatted(string);

    fputs(printed ? printed : "\"\"", out);
    cJSON_free(printed);
    cJSON_Delete(string);
}

static void write_launches(const struct fit_trace *fit, FILE *out)
{
    size_t written = 0;

    fputs("],\n \"kernels\": [", out);
    for (size_t i = 0; i < fit->launch_count && written < ROWS_MAX; i++) {
        const struct fit_measured *m = &fit->launches[i];
        const struct trace_kernel *k = &fit->ops->kernels[m->kernel];
        if (m->spread)
            continue;
        fputs(written++ ? ",\n  [" : "\n  [", out);
        put_text(out, fit->ops->names[k->name]);
        for (int d = 0; d < 3; d++)
            fprintf(out, ",%" PRIu32, k->grid[d]);
        for (int d = 0; d < 3; d++)
            fprintf(out, ",%" PRIu32, k->block[d]);
        fprintf(out, ",%.9g]", m->ns);
    }
}

static void write_products(const struct fit_trace *fit, FILE *out)
{
    size_t written = 0;

    fputs(" \"table\": [", out);
    for (size_t i = 0; i < fit->product_count && written < ROWS_MAX; i++) {
        const struct fit_measured *m = &fit->products[i];
        const struct work *work = &fit->ops->kernels[m->kernel].work;
        uint64_t words[COST_SHAPE_WORDS];
        if (m->spread)
            continue;
        unsigned count = cost_shape_words(work, words);
        fprintf(out, "%s\n  [\"%s\",\"%s\",%.9g", written++ ? "," : "",
                work_family_name(work->family), work_type_name(work->type),
                m->ns);
        for (unsigned k = 0; k < count; k++)
            fprintf(out, ",%" PRIu64, words[k]);
        fputc(']', out);
    }
}

static void write_names(const struct fit_trace *fit, FILE *out)
{
    fputs("],\n \"names\": [", out);
    for (size_t i = 0; i < fit->name_count; i++) {
        fputs(i ? ",\n  [" : "\n  [", out);
        put_text(out, fit->ops->names[fit->names[i].name]);
        fprintf(out, ",%.9g]", fit->names[i].factor);
    }
}

static void write_scales(const struct fit_trace *fit, FILE *out)
{
    const char *between = "";

    fputs("],\n \"scales\": [", out);
    for (int i = 0; i < WORK_FAMILIES; i++) {
        const struct fit_scaled *f = &fit->families[i];
        if (!(f->scale.factor > 0))
            continue;
        fprintf(out,
                "%s\n  {\"family\": \"%s\", \"factor\": %.9g, \"low\": %.9g, "
                "\"high\": %.9g, \"kernels\": %zu}",
                between, work_family_name((enum work_family)i),
                f->scale.factor, f->scale.low, f->scale.high, f->kernels);
        between = ",";
    }
}

void fit_trace_write(const struct fit_trace *fit, FILE *out)
{
    fprintf(out,
            "{\"schema\": 1, \"kind\": \"operators\", \"gpu\": \"%s\",\n"
            " \"sources\": [{\"text\": \"profiler traces%s\", \"gpu\": \"%s\", "
            "\"clock\": \"sustained\", \"rows\": %zu, \"dropped\": 0}],\n"
            " \"models\": [],\n",
            fit->gpu, fit->ops->simulated ? ", " SIMULATED_TEXT : "", fit->gpu,
            fit->ops->count);
    write_products(fit, out);
    write_launches(fit, out);
    write_names(fit, out);
    write_scales(fit, out);
    fputs("]", out);
    if (fit->write_more)
        fit->write_more(fit->more, out);
    else
        fputs("}", out);
    fputc('\n', out);
}

static size_t count_spread(const struct fit_measured *list, size_t count)
{
    size_t spread = 0;

    for (size_t i = 0; i < count; i++)
        spread += list[i].spread;
    return spread;
}

void fit_trace_print(const struct fit_trace *fit, FILE *out)
{
    size_t launches = count_spread(fit->launches, fit->launch_count);
    size_t products = count_spread(fit->products, fit->product_count);

    fprintf(out, "%s: %zu kernels of %zu trace%s", fit->gpu, fit->ops->count,
            fit->ops->traces, fit->ops->traces == 1 ? "" : "s");
    if (fit->ops->traces > 1)
        fprintf(out, " of %" PRIu32 " job%s", fit->jobs,
                fit->jobs == 1 ? "" : "s");
    fputc('\n', out);
    fprintf(out,
            "%zu launches by name, grid and block; %zu more vary too much\n",
            fit->launch_count - launches, launches);
    fprintf(out, "%zu products by shape; %zu more vary too much\n",
            fit->product_count - products, products);
    fprintf(out, "%zu kernels by name, for other grids\n", fit->name_count);
    fprintf(out, "%-24s %8s %8s %16s\n", "family, by shapes", "launches",
            "factor", "band");
    for (int i = 0; i < WORK_FAMILIES; i++) {
        const struct fit_scaled *f = &fit->families[i];
        if (f->scale.factor > 0)
            fprintf(out, "%-24s %8zu %8.2f   %5.2f to %5.2f\n",
                    work_family_name((enum work_family)i), f->kernels,
                    f->scale.factor, f->scale.low, f->scale.high);
        else if (f->kernels)
            fprintf(out, "%-24s %8zu %8s\n",
                    work_family_name((enum work_family)i), f->kernels, "-");
    }
}

/* --- evaluation ----------------------------------------------------------- */

struct sum {
    size_t kernels;
    double ns, exact_ns, predicted_ns, off_ns;
};

static void sum_add(struct sum *s, double ns, const struct cost_answer *answer)
{
    double predicted = (double)answer->ns;

    s->kernels++;
    s->ns += ns;
    s->predicted_ns += predicted;
    s->off_ns += fabs(predicted - ns);
    if (answer->basis == COST_MEASURED)
        s->exact_ns += ns;
}

static void sum_print(const char *name, const struct sum *s, FILE *out)
{
    if (s->kernels)
        fprintf(out, "%-24s %8zu %10.3f %7.1f%% %7.1f%% %+7.1f%%\n", name,
                s->kernels, s->ns / 1e6, 100 * s->exact_ns / s->ns,
                100 * s->off_ns / s->ns, 100 * (s->predicted_ns / s->ns - 1));
}

void fit_trace_eval(const struct trace_ops *ops, const struct cost_gpu *limits,
                    const struct cost_image *image, FILE *out)
{
    struct sum sums[WORK_FAMILIES] = {{0}}, all = {0};

    for (size_t i = 0; i < ops->count; i++) {
        const struct trace_kernel *k = &ops->kernels[i];
        struct cost_answer answer;
        double ns = k->op_ns;
        if (k->work.family == WORK_NOTHING)
            continue;
        cost_price(image, limits, &k->work, &answer);
        if (answer.basis != COST_MEASURED &&
            !cost_price_kernel(image, launch_key(ops, i), &answer))
            ns = k->ns;
        else
            cost_correct_kernel(image, name_key(ops, i), &k->work, &answer);
        sum_add(&sums[k->work.family], ns, &answer);
        sum_add(&all, ns, &answer);
    }
    fprintf(out, "%-24s %8s %10s %8s %8s %8s\n", "family", "kernels", "ms",
            "measured", "error", "sum");
    for (int i = 0; i < WORK_FAMILIES; i++)
        sum_print(work_family_name((enum work_family)i), &sums[i], out);
    sum_print("all", &all, out);
}
