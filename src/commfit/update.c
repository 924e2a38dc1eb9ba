/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/update.h"
#include "commfit/fit_write.h"
#include "common/base/json_text.h"
#include "common/base/xmalloc.h"
#include "fits/fit_read.h"
#include "runtime/nccl/cost_nccl.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Standard deviations of log(t): what a cluster may have moved by before
 * anything was measured, and what a single measurement is off by. Their ratio
 * is the step: the first measurement moves a shift by 0.2^2 / (0.2^2 + 0.1^2) =
 * 80% of what it was off by, the tenth by about a tenth. */
#define PRIOR  0.2
#define SINGLE 0.1

/* Each measurement weighs this much of the next one, so that about the last
 * hundred count; the covariance never grows beyond the prior's, which keeps the
 * step below 1: the recursion cannot diverge. */
#define FORGET 0.99

#define LEFT_MAX  0.7 /* a factor of 2: more is a disturbance */
#define SHIFT_MAX 2.0

static void update_start(struct fit_update *u)
{
    memset(u, 0, sizeof *u);
    for (int i = 0; i < FIT_HATS; i++)
        u->covariance[i][i] = PRIOR * PRIOR;
}

static void update_forget(struct fit_update *u)
{
    double largest = 0;

    for (int i = 0; i < FIT_HATS; i++)
        largest = fmax(largest, u->covariance[i][i]);
    double factor = fmin(1 / FORGET, PRIOR * PRIOR / largest);
    for (int i = 0; i < FIT_HATS; i++)
        for (int j = 0; j < FIT_HATS; j++)
            u->covariance[i][j] *= factor;
}

void update_step(struct fit_update *u, double bytes, double left)
{
    double hats[FIT_HATS], ph[FIT_HATS], variance = SINGLE * SINGLE;

    if (!u->count)
        update_start(u);
    u->count++;
    cost_nccl_hats(bytes, hats);
    for (int i = 0; i < FIT_HATS; i++) {
        ph[i] = 0;
        for (int j = 0; j < FIT_HATS; j++)
            ph[i] += u->covariance[i][j] * hats[j];
        variance += hats[i] * ph[i];
    }
    left = fmin(fmax(left, -LEFT_MAX), LEFT_MAX);
    for (int i = 0; i < FIT_HATS; i++) {
        double shift = u->shift[i] + ph[i] / variance * left;

        u->shift[i] = fmin(fmax(shift, -SHIFT_MAX), SHIFT_MAX);
        for (int j = 0; j < FIT_HATS; j++)
            u->covariance[i][j] -= ph[i] * ph[j] / variance;
    }
    update_forget(u);
}

/* What FIT is off by at P's SAMPLE, on a logarithmic scale; NAN: it has no
 * answer. */
static double left_of(const struct fit *fit, const struct bench_point *p,
                      double us)
{
    struct cost_nccl_answer answer;
    const struct cost_nccl_query query = {
        .coll = p->coll,
        .nodes = p->nodes,
        .gpus_per_node = p->gpus,
        .bytes = (double)p->bytes,
        .in_place = p->in_place,
    };

    return cost_nccl(fit, &query, &answer) ? NAN : log(us / answer.us);
}

static double least_time(const struct bench_point *p)
{
    double us = p->us[0];

    for (uint32_t i = 1; i < p->kept; i++)
        us = fmin(us, p->us[i]);
    return us;
}

/* How far off the fit was over the measurements, before and after. */
struct moved {
    uint32_t count;
    double before, after; /* sums of |predicted / measured - 1| */
};

/* Single ranks' times contain the wait for their peers: the least of them
 * stands for the collective. */
static void take_point(const struct fit *fit, struct fit_family *f,
                       const struct bench_point *p)
{
    uint32_t count = p->by_rank ? 1 : p->kept;

    for (uint32_t i = 0; i < count; i++) {
        double left = left_of(fit, p, p->by_rank ? least_time(p) : p->us[i]);

        if (!isnan(left))
            update_step(&f->update, (double)p->bytes, left);
    }
}

/* Adds what FIT, as it is now, is off by at P to *SUM; returns over how many
 * measurements. */
static uint32_t score_point(const struct fit *fit, const struct bench_point *p,
                            double *sum)
{
    uint32_t count = p->by_rank ? 1 : p->kept, scored = 0;

    for (uint32_t i = 0; i < count; i++) {
        double left = left_of(fit, p, p->by_rank ? least_time(p) : p->us[i]);

        if (isnan(left))
            continue;
        *sum += fabs(expm1(-left));
        scored++;
    }
    return scored;
}

static bool family_owns(const struct fit_family *f, const struct bench_point *p)
{
    return p->coll == f->coll && p->gpus == f->gpus_per_node;
}

static struct moved move_family(struct fit *fit, struct fit_family *f,
                                const struct bench *b)
{
    struct moved moved = {0};

    /* The error before is that of the fit as it was, at all of them. */
    for (size_t i = 0; i < b->point_count; i++)
        if (family_owns(f, &b->points[i]))
            moved.count += score_point(fit, &b->points[i], &moved.before);
    for (size_t i = 0; i < b->point_count; i++)
        if (family_owns(f, &b->points[i]))
            take_point(fit, f, &b->points[i]);
    for (size_t i = 0; i < b->point_count; i++)
        if (family_owns(f, &b->points[i]))
            score_point(fit, &b->points[i], &moved.after);
    return moved;
}

static int move_fit(struct fit *fit, const struct bench *b, cJSON *families,
                    FILE *out, struct err *err)
{
    uint32_t total = 0;

    for (uint32_t i = 0; i < fit->family_count; i++) {
        struct fit_family *f = &fit->families[i];
        cJSON *item = cJSON_GetArrayItem(families, (int)i);
        struct moved moved = move_family(fit, f, b);

        if (!moved.count)
            continue;
        total += moved.count;
        cJSON_DeleteItemFromObject(item, "update");
        cJSON_AddItemToObject(item, "update", update_to_json(&f->update));
        fprintf(out,
                "%s on %u GPUs a node: %u measurements, mean error %.1f%% "
                "before, %.1f%% after\n",
                fit_coll_name(f->coll), f->gpus_per_node, moved.count,
                100 * moved.before / moved.count,
                100 * moved.after / moved.count);
    }
    if (!total)
        return err_set(err, "none of the measurements is of a collective and "
                            "width that the fit has; fit it anew with them");
    return 0;
}

/* TEXT is the fit's, of PATH; it goes to OUTPUT. */
struct move {
    char *text;
    size_t length;
    const char *path, *output;
    FILE *out;
};

static int move_text(const struct move *m, const struct bench *b,
                     struct err *err)
{
    struct fit fit;
    int rc;

    if (fit_load_text(m->text, m->length, m->path, &fit, err))
        return -1;
    cJSON *root = json_text_parse(m->text, m->length, m->path, err);
    if (!root) {
        rc = -1;
        goto fini_fit;
    }
    rc = move_fit(&fit, b, cJSON_GetObjectItemCaseSensitive(root, "families"),
                  m->out, err);
    if (!rc)
        rc = fit_check(&fit, m->path, err);
    if (!rc)
        rc = json_write(root, m->output, err);
    cJSON_Delete(root);
fini_fit:
    fit_fini(&fit);
    return rc;
}

int update_file(const char *fit_path, const char *from, const char *output,
                FILE *out, struct err *err)
{
    struct move m = {.path = fit_path, .output = output, .out = out};
    struct bench b;

    m.text = json_text_read(fit_path, &m.length, err);
    if (!m.text)
        return -1;
    bench_init(&b);
    int rc = bench_read(&b, from, err);
    if (!rc) {
        bench_sort(&b);
        rc = move_text(&m, &b, err);
    }
    bench_fini(&b);
    free(m.text);
    return rc;
}
