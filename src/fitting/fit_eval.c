/* SPDX-License-Identifier: Apache-2.0 */
#include "fitting/fit_eval.h"
#include "common/base/xmalloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A class of work in one file, priced on one basis. */
struct group {
    enum work_family family;
    enum work_type type;
    unsigned variant;
    uint32_t source;
    enum cost_basis basis;
    double *errors; /* price / time - 1 */
    size_t count, capacity, inside;
};

struct groups {
    struct group *items;
    size_t count, capacity;
};

static bool is_same(const struct group *g, const struct ops_sample *s,
                    enum cost_basis basis)
{
    return g->family == s->work.family && g->type == s->work.type &&
           g->variant == work_variant(&s->work) && g->source == s->source &&
           g->basis == basis;
}

static struct group *find_group(struct groups *groups,
                                const struct ops_sample *s,
                                enum cost_basis basis)
{
    for (size_t i = 0; i < groups->count; i++)
        if (is_same(&groups->items[i], s, basis))
            return &groups->items[i];
    xgrow(&groups->items, groups->count, &groups->capacity,
          sizeof *groups->items);
    struct group *g = &groups->items[groups->count++];
    *g = (struct group){.family = s->work.family,
                        .type = s->work.type,
                        .variant = work_variant(&s->work),
                        .source = s->source,
                        .basis = basis};
    return g;
}

static void add_sample(struct groups *groups, const struct ops_sample *s,
                       const struct cost_answer *answer)
{
    struct group *g = find_group(groups, s, answer->basis);

    xgrow(&g->errors, g->count, &g->capacity, sizeof *g->errors);
    g->errors[g->count++] = (double)answer->ns / s->ns - 1;
    g->inside +=
        s->ns >= (double)answer->low_ns && s->ns <= (double)answer->high_ns;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void print_group(const struct ops *ops, struct group *g, FILE *out)
{
    const struct ops_source *source = &ops->sources[g->source];
    const char *variant = work_variant_name(g->family, g->variant);
    double bias = median_of(g->errors, g->count), sum = 0;
    char name[96];

    for (size_t i = 0; i < g->count; i++) {
        g->errors[i] = fabs(g->errors[i]);
        sum += g->errors[i];
    }
    snprintf(name, sizeof name, "%s %s %s", work_family_name(g->family),
             work_type_name(g->type), variant ? variant : "");
    fprintf(out, "%-34s %-9s %6zu %7.1f%% %7.1f%% %+7.1f%% %5.0f%%  %s\n", name,
            cost_basis_name(g->basis), g->count, 100 * sum / (double)g->count,
            100 * median_of(g->errors, g->count), 100 * bias,
            100.0 * (double)g->inside / (double)g->count,
            base_name(source->file));
}

size_t fit_eval_print(const struct ops *ops, const char *gpu,
                      const struct cost_image *image,
                      const struct cost_gpu *limits, FILE *out)
{
    struct groups groups = {0};
    size_t rows = 0;

    for (size_t i = 0; i < ops->count; i++) {
        const struct ops_sample *s = &ops->samples[i];
        struct cost_answer answer;

        if (strcmp(ops->sources[s->source].gpu_name, gpu))
            continue;
        cost_price(image, limits, &s->work, &answer);
        add_sample(&groups, s, &answer);
        rows++;
    }
    fprintf(out, "%-34s %-9s %6s %8s %8s %8s %6s  %s\n", "class", "basis",
            "rows", "mean", "median", "bias", "band", "file");
    for (size_t i = 0; i < groups.count; i++) {
        print_group(ops, &groups.items[i], out);
        free(groups.items[i].errors);
    }
    free(groups.items);
    return rows;
}
