/* SPDX-License-Identifier: Apache-2.0
 * The text of fits/NAME.json to struct fit. Keys it does not know are for
 * people: errors in full, sources, outliers. */
#include "fits/fit_read.h"
#include "fits/machine.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_text.h"

struct reader {
    const char *origin;
    struct err *err;
};

static int fit_fail(const struct reader *r, const char *key, const char *must)
{
    return err_set(r->err, "%s: \"%s\" must be %s; write it with commfit",
                   r->origin, key, must);
}

static const cJSON *member_get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Of two sorts of failure the loaders tell one: a number that is not there is
 * NAN, which no range of fit_check takes. */
static double number_read(const cJSON *object, const char *key)
{
    const cJSON *item = member_get(object, key);

    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static uint32_t read_count(const cJSON *object, const char *key)
{
    double value = number_read(object, key);

    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static void copy_text(const cJSON *object, const char *key, char *to,
                      size_t size)
{
    const cJSON *item = member_get(object, key);

    snprintf(to, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

/* Exactly N numbers. */
static int read_numbers(const cJSON *array, double *to, int n)
{
    const cJSON *item;
    int i = 0;

    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != n)
        return -1;
    cJSON_ArrayForEach(item, array)
    {
        if (!cJSON_IsNumber(item))
            return -1;
        to[i++] = item->valuedouble;
    }
    return 0;
}

static int read_pieces(const struct reader *r, const cJSON *array,
                       struct fit_sigmoid *pieces, uint32_t *piece_count)
{
    const cJSON *item;

    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) > FIT_PIECES)
        return fit_fail(r, "pieces", "a list of at most 4 sigmoids");
    *piece_count = 0;
    cJSON_ArrayForEach(item, array)
    {
        const cJSON *latency = member_get(item, "latency_us");

        pieces[(*piece_count)++] = (struct fit_sigmoid){
            .from_bytes = number_read(item, "from_bytes"),
            .latency_us = latency ? number_read(item, "latency_us") : 0,
            .limit_gbps = number_read(item, "limit_gbps"),
            .steepness = number_read(item, "steepness"),
            .midpoint = number_read(item, "midpoint"),
            .base_gbps = number_read(item, "base_gbps"),
        };
    }
    return 0;
}

static int read_knots(const struct reader *r, const cJSON *array,
                      struct fit_curve *curve)
{
    const cJSON *item;
    int size = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;
    double row[3];

    if (size < 1 || size > FIT_KNOTS_MAX)
        return fit_fail(r, "knots", "a list of [bytes, us, us in place]");
    curve->knots = calloc((size_t)size, sizeof *curve->knots);
    if (!curve->knots)
        return err_set(r->err, "%s: the host has no memory left", r->origin);
    cJSON_ArrayForEach(item, array)
    {
        if (read_numbers(item, row, 3))
            return fit_fail(r, "knots", "a list of [bytes, us, us in place]");
        curve->knots[curve->knot_count++] =
            (struct fit_knot){row[0], {row[1], row[2]}};
    }
    return 0;
}

static int read_curve(const struct reader *r, const cJSON *item,
                      struct fit_curve *curve)
{
    const cJSON *knots = member_get(item, "knots");

    curve->nodes = read_count(item, "nodes");
    curve->bytes_min = number_read(item, "bytes_min");
    curve->bytes_max = number_read(item, "bytes_max");
    curve->form = knots ? FIT_CHAIN : FIT_SIGMOID;
    if (knots)
        return read_knots(r, knots, curve);
    if (member_get(item, "correction") &&
        read_knots(r, member_get(item, "correction"), curve))
        return -1;
    return read_pieces(r, member_get(item, "pieces"), curve->pieces,
                       &curve->piece_count);
}

static int read_curves(const struct reader *r, const cJSON *array,
                       struct fit_family *f)
{
    const cJSON *item;
    int size = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;

    if (size < 1 || size > FIT_CURVES_MAX)
        return fit_fail(r, "curves", "a list of 1 to 64 curves");
    f->curves = calloc((size_t)size, sizeof *f->curves);
    if (!f->curves)
        return err_set(r->err, "%s: the host has no memory left", r->origin);
    cJSON_ArrayForEach(
        item,
        array) if (read_curve(r, item, &f->curves[f->curve_count++])) return -1;
    return 0;
}

static int read_regression(const struct reader *r, const cJSON *item,
                           struct fit_regression *to)
{
    double bytes[2], ranks[2];

    if (!item)
        return 0;
    if (read_numbers(member_get(item, "terms"), to->terms, FIT_TERMS) ||
        read_numbers(member_get(item, "bytes"), bytes, 2) ||
        read_numbers(member_get(item, "ranks"), ranks, 2))
        return fit_fail(r, "regression", "8 terms, 2 bytes and 2 ranks");
    to->known = true;
    to->bytes_min = bytes[0];
    to->bytes_max = bytes[1];
    to->ranks_min = ranks[0];
    to->ranks_max = ranks[1];
    return 0;
}

static int read_straggler(const struct reader *r, const cJSON *item,
                          struct fit_straggler *to)
{
    if (!item)
        return 0;
    if (read_numbers(member_get(item, "intercept"), to->intercept,
                     FIT_QUANTILES) ||
        read_numbers(member_get(item, "slope"), to->slope, FIT_QUANTILES))
        return fit_fail(r, "straggler", "4 intercepts and 4 slopes");
    double range[2] = {0, 0};
    if (member_get(item, "range") &&
        (read_numbers(member_get(item, "range"), range, 2) || range[0] < 0 ||
         range[1] < range[0]))
        return fit_fail(r, "straggler", "a \"range\" of two numbers");
    to->x_min = range[0];
    to->x_max = range[1];
    to->of_means = cJSON_IsTrue(member_get(item, "of_means"));
    to->known = true;
    return 0;
}

static int read_update(const struct reader *r, const cJSON *item,
                       struct fit_update *to)
{
    const cJSON *row;
    int i = 0;

    if (!item)
        return 0;
    to->count = read_count(item, "count");
    if (read_numbers(member_get(item, "shift"), to->shift, FIT_HATS) ||
        cJSON_GetArraySize(member_get(item, "covariance")) != FIT_HATS)
        return fit_fail(r, "update", "4 shifts and a 4 x 4 covariance");
    cJSON_ArrayForEach(row, member_get(item, "covariance")) if (
        read_numbers(
            row, to->covariance[i++],
            FIT_HATS)) return fit_fail(r, "update",
                                       "4 shifts and a 4 x 4 covariance");
    return 0;
}

static double error_of(const cJSON *item, const char *key)
{
    double value = number_read(item, key);

    return value >= 0 ? value : -1; /* a NAN too */
}

static int read_model(const struct reader *r, const cJSON *item,
                      const char *key, enum fit_model *model)
{
    const cJSON *name = member_get(item, key);

    for (int i = FIT_MODEL_CURVES; i < FIT_MODEL_COUNT; i++)
        if (cJSON_IsString(name) &&
            !strcmp(name->valuestring, fit_model_name((enum fit_model)i))) {
            *model = (enum fit_model)i;
            return 0;
        }
    return fit_fail(r, key, "curves, formula, published or regression");
}

/* A family of older fits has one model for all. */
static int read_models(const struct reader *r, const cJSON *item,
                       struct fit_family *f)
{
    if (read_model(r, item, "model", &f->model))
        return -1;
    if (member_get(item, "between_model") &&
        read_model(r, item, "between_model", &f->between_model))
        return -1;
    return member_get(item, "beyond_model")
               ? read_model(r, item, "beyond_model", &f->beyond_model)
               : 0;
}

static int read_family(const struct reader *r, const cJSON *item,
                       struct fit_family *f)
{
    const cJSON *coll = member_get(item, "collective");
    const cJSON *errors = member_get(item, "errors");

    if (!cJSON_IsString(coll) || fit_coll_find(coll->valuestring, &f->coll))
        return fit_fail(r, "collective", "a collective's name");
    f->gpus_per_node = read_count(item, "gpus_per_node");
    f->errors = (struct fit_errors){
        .size_median = error_of(errors, "size_median"),
        .size_p95 = error_of(errors, "size_p95"),
        .between_median = error_of(errors, "between_median"),
        .beyond_median = error_of(errors, "beyond_median"),
        .size_band = error_of(errors, "size_band"),
        .between_band = error_of(errors, "between_band"),
        .beyond_band = error_of(errors, "beyond_band"),
    };
    if (read_models(r, item, f) ||
        read_curves(r, member_get(item, "curves"), f) ||
        read_regression(r, member_get(item, "regression"), &f->regression) ||
        read_straggler(r, member_get(item, "straggler"), &f->straggler))
        return -1;
    return read_update(r, member_get(item, "update"), &f->update);
}

static int read_families(const struct reader *r, const cJSON *array,
                         struct fit *fit)
{
    const cJSON *item;
    int size = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : -1;

    if (size < 0 || size > FIT_FAMILIES_MAX)
        return fit_fail(r, "families", "a list");
    fit->families = calloc((size_t)size + 1, sizeof *fit->families);
    if (!fit->families)
        return err_set(r->err, "%s: the host has no memory left", r->origin);
    cJSON_ArrayForEach(
        item,
        array) if (read_family(r, item,
                               &fit->families[fit->family_count++])) return -1;
    return 0;
}

static int read_level(const struct reader *r, const cJSON *item,
                      struct fit_level *level)
{
    copy_text(item, "name", level->name, sizeof level->name);
    if (!cJSON_IsArray(member_get(item, "pieces"))) /* a level without data */
        return 0;
    level->known = true;
    level->latency_us = number_read(item, "latency_us");
    return read_pieces(r, member_get(item, "pieces"), level->pieces,
                       &level->piece_count);
}

static int read_levels(const struct reader *r, const cJSON *levels,
                       struct fit *fit)
{
    static const char *const names[] = {"corrected", "published"};
    const cJSON *item;

    for (int formula = 0; formula < FIT_FORMULA_COUNT; formula++) {
        const cJSON *array = member_get(levels, names[formula]);
        int i = 0;

        if (array && cJSON_GetArraySize(array) > FIT_LEVELS)
            return fit_fail(r, names[formula], "a list of at most 4 levels");
        cJSON_ArrayForEach(
            item, array) if (read_level(r, item,
                                        &fit->levels[formula][i++])) return -1;
    }
    return 0;
}

/* Fits of older versions do not have it: the GPU's name tells. */
static int read_machine(const struct reader *r, const cJSON *item,
                        struct fit *fit)
{
    if (!item) {
        machine_find(fit->gpu, &fit->machine);
        return 0;
    }
    fit->machine = (struct fit_machine){
        .link_gbps = number_read(item, "link_gbps"),
        .rack_gpus = read_count(item, "rack_gpus"),
        .nvls = cJSON_IsTrue(member_get(item, "nvls")),
    };
    if (!(fit->machine.link_gbps >= 0 && fit->machine.link_gbps < 1e6))
        return fit_fail(r, "link_gbps", "a bandwidth in 1e9 bytes a second");
    return 0;
}

static int read_root(const struct reader *r, const cJSON *root, struct fit *fit)
{
    const cJSON *kind = member_get(root, "kind");

    if (!cJSON_IsString(kind) || strcmp(kind->valuestring, "commfit"))
        return fit_fail(r, "kind", "\"commfit\"");
    if (number_read(root, "schema") != FIT_SCHEMA)
        return fit_fail(r, "schema", "1");
    copy_text(root, "name", fit->name, sizeof fit->name);
    copy_text(root, "gpu", fit->gpu, sizeof fit->gpu);
    if (read_machine(r, member_get(root, "machine"), fit) ||
        read_levels(r, member_get(root, "levels"), fit) ||
        read_families(r, member_get(root, "families"), fit))
        return -1;
    return fit_check(fit, r->origin, r->err);
}

int fit_load_text(const char *json, size_t length, const char *origin,
                  struct fit *fit, struct err *err)
{
    struct reader r = {origin, err};
    struct fit read = {0};
    cJSON *root = json_text_parse(json, length, origin, err);

    if (!root)
        return -1;
    int rc = read_root(&r, root, &read);
    cJSON_Delete(root);
    if (rc)
        fit_fini(&read);
    else
        *fit = read;
    return rc;
}

int fit_load(const char *path, struct fit *fit, struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);

    if (!text)
        return -1;
    int rc = fit_load_text(text, length, path, fit, err);
    free(text);
    return rc;
}

void fit_fini(struct fit *fit)
{
    for (uint32_t i = 0; i < fit->family_count; i++) {
        struct fit_family *f = &fit->families[i];

        for (uint32_t j = 0; j < f->curve_count; j++)
            free(f->curves[j].knots);
        free(f->curves);
    }
    free(fit->families);
}
