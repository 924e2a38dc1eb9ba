/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/fit_write.h"
#include "commfit/predict.h"
#include "common/base/file_write.h"
#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static cJSON *json_numbers(const double *values, int count)
{
    return cJSON_CreateDoubleArray(values, count);
}

/* Errors are rounded: they are statements, not coefficients. */
static double round_digits(double x)
{
    char text[32];

    snprintf(text, sizeof text, "%.4g", x);
    return strtod(text, NULL);
}

static cJSON *pieces_to_json(const struct fit_sigmoid *pieces, uint32_t count,
                             bool own_latency)
{
    cJSON *array = cJSON_CreateArray();

    for (uint32_t i = 0; i < count; i++) {
        cJSON *o = cJSON_CreateObject();

        cJSON_AddNumberToObject(o, "from_bytes", pieces[i].from_bytes);
        if (own_latency)
            cJSON_AddNumberToObject(o, "latency_us", pieces[i].latency_us);
        cJSON_AddNumberToObject(o, "limit_gbps", pieces[i].limit_gbps);
        cJSON_AddNumberToObject(o, "steepness", pieces[i].steepness);
        cJSON_AddNumberToObject(o, "midpoint", pieces[i].midpoint);
        cJSON_AddNumberToObject(o, "base_gbps", pieces[i].base_gbps);
        cJSON_AddItemToArray(array, o);
    }
    return array;
}

static cJSON *level_to_json(const struct fit_level *level)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", level->name);
    if (!level->known)
        return o;
    cJSON_AddNumberToObject(o, "latency_us", level->latency_us);
    cJSON_AddItemToObject(
        o, "pieces", pieces_to_json(level->pieces, level->piece_count, false));
    return o;
}

static cJSON *levels_to_json(const struct fit *fit)
{
    static const char *const names[] = {"corrected", "published"};
    cJSON *o = cJSON_CreateObject();

    for (int formula = 0; formula < FIT_FORMULA_COUNT; formula++) {
        cJSON *array = cJSON_AddArrayToObject(o, names[formula]);

        for (int i = 0; i < FIT_LEVELS; i++)
            if (fit->levels[formula][i].name[0])
                cJSON_AddItemToArray(array,
                                     level_to_json(&fit->levels[formula][i]));
    }
    return o;
}

static cJSON *knots_to_json(const struct fit_curve *c)
{
    cJSON *array = cJSON_CreateArray();

    for (uint32_t i = 0; i < c->knot_count; i++) {
        const struct fit_knot *k = &c->knots[i];

        cJSON_AddItemToArray(
            array, json_numbers((double[]){k->bytes, k->us[0], k->us[1]}, 3));
    }
    return array;
}

static cJSON *curve_to_json(const struct fit_curve *c)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "nodes", c->nodes);
    cJSON_AddNumberToObject(o, "bytes_min", c->bytes_min);
    cJSON_AddNumberToObject(o, "bytes_max", c->bytes_max);
    if (c->form == FIT_CHAIN)
        cJSON_AddItemToObject(o, "knots", knots_to_json(c));
    else
        cJSON_AddItemToObject(o, "pieces",
                              pieces_to_json(c->pieces, c->piece_count, true));
    if (c->form == FIT_SIGMOID && c->knot_count)
        cJSON_AddItemToObject(o, "correction", knots_to_json(c));
    return o;
}

static cJSON *regression_to_json(const struct fit_regression *r)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToObject(o, "terms", json_numbers(r->terms, FIT_TERMS));
    cJSON_AddItemToObject(
        o, "bytes", json_numbers((double[]){r->bytes_min, r->bytes_max}, 2));
    cJSON_AddItemToObject(
        o, "ranks", json_numbers((double[]){r->ranks_min, r->ranks_max}, 2));
    return o;
}

static cJSON *straggler_to_json(const struct fit_straggler *s)
{
    cJSON *o = cJSON_CreateObject();
    const double quantiles[] = {0.5, 0.75, 0.95, 0.99};

    cJSON_AddItemToObject(o, "quantiles",
                          json_numbers(quantiles, FIT_QUANTILES));
    cJSON_AddItemToObject(o, "intercept",
                          json_numbers(s->intercept, FIT_QUANTILES));
    cJSON_AddItemToObject(o, "slope", json_numbers(s->slope, FIT_QUANTILES));
    if (s->x_max > 0)
        cJSON_AddItemToObject(o, "range",
                              json_numbers((double[]){s->x_min, s->x_max}, 2));
    if (s->of_means)
        cJSON_AddTrueToObject(o, "of_means");
    return o;
}

cJSON *update_to_json(const struct fit_update *update)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "count", update->count);
    cJSON_AddItemToObject(o, "shift", json_numbers(update->shift, FIT_HATS));
    cJSON *rows = cJSON_AddArrayToObject(o, "covariance");
    for (int i = 0; i < FIT_HATS; i++)
        cJSON_AddItemToArray(rows,
                             json_numbers(update->covariance[i], FIT_HATS));
    return o;
}

static void add_error(cJSON *o, const char *key, double value)
{
    if (value >= 0)
        cJSON_AddNumberToObject(o, key, round_digits(value));
}

static cJSON *errors_to_json(const struct fit_errors *e)
{
    cJSON *o = cJSON_CreateObject();

    add_error(o, "size_median", e->size_median);
    add_error(o, "size_p95", e->size_p95);
    add_error(o, "between_median", e->between_median);
    add_error(o, "beyond_median", e->beyond_median);
    add_error(o, "size_band", e->size_band);
    add_error(o, "between_band", e->between_band);
    add_error(o, "beyond_band", e->beyond_band);
    return o;
}

/* Where the fit may be trusted. */
static cJSON *trust_to_json(const struct fit_family *f)
{
    uint32_t several = 0;
    double low = INFINITY, high = 0;
    cJSON *o = cJSON_CreateObject();
    cJSON *nodes = cJSON_AddArrayToObject(o, "nodes");

    for (uint32_t i = 0; i < f->curve_count; i++) {
        cJSON_AddItemToArray(nodes, cJSON_CreateNumber(f->curves[i].nodes));
        several += f->curves[i].nodes > 1;
        low = fmin(low, f->curves[i].bytes_min);
        high = fmax(high, f->curves[i].bytes_max);
    }
    cJSON_AddItemToObject(o, "bytes", json_numbers((double[]){low, high}, 2));
    cJSON_AddStringToObject(o, "scaling",
                            several > 1   ? "between measured node counts"
                            : several > 0 ? "extrapolated from one node count"
                                          : "one node only");
    return o;
}

static cJSON *family_to_json(const struct fit_family *f)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "collective", fit_coll_name(f->coll));
    cJSON_AddNumberToObject(o, "gpus_per_node", f->gpus_per_node);
    cJSON_AddStringToObject(o, "model", fit_model_name(f->model));
    if (f->between_model)
        cJSON_AddStringToObject(o, "between_model",
                                fit_model_name(f->between_model));
    if (f->beyond_model)
        cJSON_AddStringToObject(o, "beyond_model",
                                fit_model_name(f->beyond_model));
    cJSON_AddItemToObject(o, "trust", trust_to_json(f));
    cJSON_AddItemToObject(o, "errors", errors_to_json(&f->errors));
    cJSON *curves = cJSON_AddArrayToObject(o, "curves");
    for (uint32_t i = 0; i < f->curve_count; i++)
        cJSON_AddItemToArray(curves, curve_to_json(&f->curves[i]));
    if (f->regression.known)
        cJSON_AddItemToObject(o, "regression",
                              regression_to_json(&f->regression));
    if (f->straggler.known)
        cJSON_AddItemToObject(o, "straggler", straggler_to_json(&f->straggler));
    if (f->update.count)
        cJSON_AddItemToObject(o, "update", update_to_json(&f->update));
    return o;
}

static cJSON *summary_to_json(const struct score_summary *s)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "n", (double)s->count);
    cJSON_AddNumberToObject(o, "median", round_digits(s->median));
    cJSON_AddNumberToObject(o, "p95", round_digits(s->p95));
    cJSON_AddNumberToObject(o, "mape", round_digits(s->mape));
    cJSON_AddNumberToObject(o, "rmse_ms", round_digits(s->rmse_ms));
    cJSON_AddNumberToObject(o, "worst", round_digits(s->worst));
    cJSON_AddStringToObject(o, "worst_collective",
                            fit_coll_name(s->worst_row->coll));
    cJSON_AddNumberToObject(o, "worst_nodes", s->worst_row->nodes);
    cJSON_AddNumberToObject(o, "worst_bytes", s->worst_row->bytes);
    return o;
}

static void add_summary(cJSON *to, const char *key, const struct scores *scores,
                        const struct score_filter *filter, enum scorer who)
{
    struct score_summary s = score_sum(scores, filter, who);

    if (s.count)
        cJSON_AddItemToObject(to, key, summary_to_json(&s));
}

/* By size decade and by world size, of the fit itself. */
static void add_parts(cJSON *to, const struct scores *scores,
                      enum held_out held)
{
    char key[32];

    for (double low = 1; low < 1e12; low *= 10) {
        struct score_filter f = {
            .held = held, .bytes_min = low, .bytes_max = 10 * low};

        snprintf(key, sizeof key, "from %.0e bytes", low);
        add_summary(to, key, scores, &f, SCORE_FIT);
    }
    uint32_t last = 0;
    for (;;) {
        uint32_t nodes = UINT32_MAX;

        for (size_t i = 0; i < scores->count; i++)
            if (scores->rows[i].nodes > last && scores->rows[i].nodes < nodes)
                nodes = scores->rows[i].nodes;
        if (nodes == UINT32_MAX)
            break;
        struct score_filter f = {.held = held, .nodes = nodes};
        snprintf(key, sizeof key, "on %u nodes", nodes);
        add_summary(to, key, scores, &f, SCORE_FIT);
        last = nodes;
    }
}

cJSON *scores_to_json(const struct scores *scores)
{
    cJSON *o = cJSON_CreateObject();

    for (int held = 0; held < HELD_COUNT; held++) {
        cJSON *by = cJSON_CreateObject();
        struct score_filter f = {.held = (enum held_out)held};

        for (int who = 0; who < SCORER_COUNT; who++)
            add_summary(by, scorer_name((enum scorer)who), scores, &f,
                        (enum scorer)who);
        if (by->child)
            add_parts(by, scores, (enum held_out)held);
        if (by->child)
            cJSON_AddItemToObject(o, held_out_name((enum held_out)held), by);
        else
            cJSON_Delete(by);
    }
    return o;
}

cJSON *eval_to_json(const struct scores *scores)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < scores->count; i++) {
        const struct score_row *row = &scores->rows[i];
        struct prediction p = {
            .coll = row->coll,
            .bytes = row->bytes,
            .nodes = row->nodes,
            .gpus = row->gpus,
            .answer = row->answer,
            .answered = !isnan(row->predicted[SCORE_FIT]),
        };

        if (row->held != HELD_EVAL)
            continue;
        if (p.answered && p.answer.us > 0)
            p.busbw_gbps = fit_coll_factor(p.coll, (double)p.nodes * p.gpus) *
                           p.bytes / p.answer.us / 1e3;
        cJSON *o = prediction_to_json(&p);
        cJSON_AddBoolToObject(o, "in_place", row->in_place);
        cJSON_AddNumberToObject(o, "measured_us", row->us);
        cJSON_AddItemToArray(array, o);
    }
    return array;
}

static cJSON *outliers_to_json(const struct outliers *list)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < list->count; i++) {
        const struct outlier *x = &list->items[i];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "collective", fit_coll_name(x->coll));
        cJSON_AddNumberToObject(o, "nodes", x->nodes);
        cJSON_AddNumberToObject(o, "gpus_per_node", x->gpus);
        cJSON_AddNumberToObject(o, "bytes", x->bytes);
        cJSON_AddBoolToObject(o, "in_place", x->in_place);
        cJSON_AddNumberToObject(o, "us", round_digits(x->us));
        cJSON_AddNumberToObject(o, "expected_us", round_digits(x->expected_us));
        cJSON_AddItemToArray(array, o);
    }
    return array;
}

static void add_bench(cJSON *o, const struct bench *b)
{
    cJSON *sources = cJSON_AddArrayToObject(o, "sources");
    size_t shown = b->source_count < 64 ? b->source_count : 64;

    for (size_t i = 0; i < shown; i++)
        cJSON_AddItemToArray(sources, cJSON_CreateString(b->sources[i]));
    cJSON_AddNumberToObject(o, "rows", (double)b->rows);
    cJSON *dropped = cJSON_AddObjectToObject(o, "dropped");
    for (int i = 0; i < BENCH_REASONS; i++)
        if (b->dropped[i])
            cJSON_AddNumberToObject(dropped,
                                    bench_reason_text((enum bench_reason)i),
                                    (double)b->dropped[i]);
    cJSON *notes = cJSON_AddArrayToObject(o, "notes");
    for (size_t i = 0; i < b->note_count; i++)
        cJSON_AddItemToArray(notes, cJSON_CreateString(b->notes[i].text));
}

static cJSON *machine_to_json(const struct fit_machine *m)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "link_gbps", m->link_gbps);
    cJSON_AddNumberToObject(o, "rack_gpus", m->rack_gpus);
    cJSON_AddBoolToObject(o, "nvls", m->nvls);
    return o;
}

cJSON *fit_to_json(const struct fit *fit, const struct fit_story *story)
{
    cJSON *root = cJSON_CreateObject();

    cJSON_AddNumberToObject(root, "schema", FIT_SCHEMA);
    cJSON_AddStringToObject(root, "kind", "commfit");
    cJSON_AddStringToObject(root, "name", fit->name);
    cJSON_AddStringToObject(root, "gpu", fit->gpu);
    cJSON_AddItemToObject(root, "machine", machine_to_json(&fit->machine));
    add_bench(root, story->bench);
    cJSON_AddItemToObject(root, "levels", levels_to_json(fit));
    cJSON *families = cJSON_AddArrayToObject(root, "families");
    for (uint32_t i = 0; i < fit->family_count; i++)
        cJSON_AddItemToArray(families, family_to_json(&fit->families[i]));
    cJSON_AddItemToObject(root, "errors", scores_to_json(story->scores));
    cJSON_AddItemToObject(root, "outliers", outliers_to_json(story->outliers));
    return root;
}

static char *exact_text(double value)
{
    char text[32];
    int digits = 15;

    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtod(text, NULL) != value && digits++ < 17);
    return strdup(text);
}

void json_make_exact(cJSON *root)
{
    for (cJSON *item = root; item; item = item->next) {
        json_make_exact(item->child);
        if (!cJSON_IsNumber(item))
            continue;
        item->valuestring = exact_text(item->valuedouble);
        if (item->valuestring)
            item->type = cJSON_Raw | (item->type & ~0xff);
    }
}

int json_write(cJSON *root, const char *path, struct err *err)
{
    json_make_exact(root);
    char *text = cJSON_Print(root);

    if (!text)
        return err_set(err, "%s: the host has no memory left", path);
    text_make_utf8(text);
    char *line = xasprintf("%s\n", text);
    int rc = file_write_text(line, strlen(line), path, err);
    free(line);
    free(text);
    return rc;
}
