/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/corrections.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "common/base/file_write.h"
#include "common/base/json_add.h"
#include "common/base/json_text.h"
#include "common/base/xmalloc.h"
#include "common/trace/convolution_key.h"
#include "fitting/fit_trace.h"
#include "memsim/time/truth_side.h"

#define SCHEMA    "corrections_schema"
#define MORE_MOST (INT64_C(1) << 40)
#define WORKSPACE_TEXT 48 /* of one row for the program; two numbers */

void corrections_add(struct corrections *c, uint64_t operation,
                     const char *text, uint64_t run_bytes)
{
    if (operation >= TRUTH_PASSES ||
        c->convolution_count == CORRECTIONS_CONVOLUTIONS)
        return;
    if (!c->convolutions)
        c->convolutions =
            xcalloc(CORRECTIONS_CONVOLUTIONS, sizeof *c->convolutions);
    c->convolutions[c->convolution_count++] =
        (struct corrected_convolution){operation, xstrdup(text), run_bytes};
}

void corrections_fini(struct corrections *c)
{
    for (uint32_t i = 0; i < c->convolution_count; i++)
        free(c->convolutions[i].text);
    free(c->convolutions);
    c->convolutions = NULL;
    c->convolution_count = 0;
}

static void add_convolutions(const struct corrections *c, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "convolutions");

    for (uint32_t i = 0; i < c->convolution_count; i++) {
        const struct corrected_convolution *v = &c->convolutions[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(list, row);
        cJSON_AddStringToObject(row, "operation", truth_pass(v->operation));
        cJSON_AddStringToObject(row, "shape", v->text);
        json_add_uint(row, "workspace_bytes", v->run_bytes);
    }
}

static void add_workspaces(const struct corrections *c, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "workspaces");

    for (uint32_t i = 0; i < c->workspace_count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(list, row);
        json_add_uint(row, "estimate_bytes", c->workspaces[i].estimate_bytes);
        json_add_uint(row, "run_bytes", c->workspaces[i].run_bytes);
    }
}

/* What follows the fit's own members. */
static void write_more(const void *what, FILE *out)
{
    const struct corrections *c = what;
    cJSON *root = cJSON_CreateObject();

    cJSON_AddNumberToObject(root, SCHEMA, 1);
    json_add_uint(root, "context_bytes", c->context_bytes);
    cJSON_AddNumberToObject(root, "libraries_more_bytes",
                            (double)c->libraries_more_bytes);
    cJSON *scale = cJSON_AddObjectToObject(root, "scale");
    for (int f = 0; f < WORK_FAMILIES; f++)
        if (c->scale[f] > 0)
            cJSON_AddNumberToObject(scale,
                                    work_family_name((enum work_family)f),
                                    round(1e4 * c->scale[f]) / 1e4);
    add_workspaces(c, root);
    add_convolutions(c, root);
    char *text = cJSON_Print(root);
    fprintf(out, ",%s", strchr(text, '{') + 1); /* with the fit's end */
    cJSON_free(text);
    cJSON_Delete(root);
}

static void write_json(const void *what, FILE *out)
{
    const struct corrections *c = what;

    c->fit->write_more = write_more;
    c->fit->more = c;
    fit_trace_write(c->fit, out);
}

int corrections_write(const struct corrections *c, const char *path,
                      struct err *err)
{
    return file_write(write_json, c, path, err);
}

static int scale_read(struct corrections *c, const cJSON *scale,
                      const char *path, struct err *err)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, scale)
    {
        enum work_family f = work_family_find(row->string);

        if (f == WORK_OTHER && strcmp(row->string, work_family_name(f)))
            return err_set(err, "%s: scale: '%s' is no family of operations",
                           path, row->string);
        if (!cJSON_IsNumber(row) || !(row->valuedouble > 0) ||
            !isfinite(row->valuedouble))
            return err_set(err, "%s: scale: %s is no number above 0", path,
                           row->string);
        c->scale[f] = row->valuedouble;
    }
    return 0;
}

static bool is_bytes(const cJSON *number, double least)
{
    return cJSON_IsNumber(number) && number->valuedouble >= least &&
           number->valuedouble < (double)MORE_MOST;
}

static int workspaces_read(struct corrections *c, const cJSON *list,
                           const char *path, struct err *err)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, list)
    {
        const cJSON *from = cJSON_GetObjectItem(row, "estimate_bytes");
        const cJSON *to = cJSON_GetObjectItem(row, "run_bytes");

        if (!is_bytes(from, 1) || !is_bytes(to, 0) ||
            c->workspace_count == CORRECTIONS_WORKSPACES)
            return err_set(err, "%s: workspaces: at most %d, each with "
                                "estimate_bytes above 0 and run_bytes",
                           path, CORRECTIONS_WORKSPACES);
        c->workspaces[c->workspace_count++] = (struct corrected_workspace){
            (uint64_t)from->valuedouble, (uint64_t)to->valuedouble};
    }
    return 0;
}

/* Files of before have none. */
static int convolutions_read(struct corrections *c, const cJSON *list,
                             const char *path, struct err *err)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, list)
    {
        const cJSON *bytes = cJSON_GetObjectItem(row, "workspace_bytes");
        const char *name = json_text_of(row, "operation");
        const char *shape = json_text_of(row, "shape");
        size_t operation = 0;

        while (name && operation < TRUTH_PASSES &&
               strcmp(truth_pass(operation), name))
            operation++;
        if (!name || operation == TRUTH_PASSES || !shape ||
            !is_bytes(bytes, 0) ||
            c->convolution_count == CORRECTIONS_CONVOLUTIONS)
            return err_set(err, "%s: convolutions: at most %d, each with an "
                                "operation, a shape and workspace_bytes",
                           path, CORRECTIONS_CONVOLUTIONS);
        corrections_add(c, operation, shape, (uint64_t)bytes->valuedouble);
    }
    return 0;
}

static int root_read(struct corrections *c, const cJSON *root, const char *path,
                     struct err *err)
{
    const cJSON *schema = cJSON_GetObjectItem(root, SCHEMA);
    const cJSON *context = cJSON_GetObjectItem(root, "context_bytes");
    const cJSON *more = cJSON_GetObjectItem(root, "libraries_more_bytes");
    const char *gpu = json_text_of(root, "gpu");

    if (!cJSON_IsNumber(schema) || schema->valueint != 1 || !gpu ||
        strlen(gpu) >= sizeof c->gpu || !cJSON_IsNumber(context) ||
        !cJSON_IsNumber(more) || context->valuedouble < 0 ||
        fabs(more->valuedouble) > (double)MORE_MOST ||
        context->valuedouble > (double)MORE_MOST)
        return err_set(err, "%s: no file of corrections: `memsim diff --truth "
                            "--save-corrections' writes one",
                       path);
    strcpy(c->gpu, gpu);
    c->context_bytes = (uint64_t)context->valuedouble;
    c->libraries_more_bytes = (int64_t)more->valuedouble;
    return workspaces_read(c, cJSON_GetObjectItem(root, "workspaces"), path,
                           err) ||
                   convolutions_read(
                       c, cJSON_GetObjectItem(root, "convolutions"), path,
                       err) ||
                   scale_read(c, cJSON_GetObjectItem(root, "scale"), path, err)
               ? -1
               : 0;
}

int corrections_read(struct corrections *c, const char *path, struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);

    *c = (struct corrections){0};
    if (!text)
        return -1;
    cJSON *root = json_text_parse(text, length, path, err);
    int rc = root ? root_read(c, root, path, err) : -1;
    cJSON_Delete(root);
    free(text);
    if (rc)
        corrections_fini(c);
    return rc;
}

int corrections_apply(const struct corrections *c, struct gpu *gpu,
                      struct err *err)
{
    int64_t kernels =
        (int64_t)(gpu->context_torch_bytes - gpu->context_bytes) +
        c->libraries_more_bytes;

    if (strcmp(c->gpu, gpu->name))
        return err_set(err, "--corrections: they are of %s, not of %s; give "
                            "--gpu %s",
                       c->gpu, gpu->name, c->gpu);
    gpu->context_bytes = c->context_bytes;
    gpu->context_torch_bytes =
        c->context_bytes + (kernels > 0 ? (uint64_t)kernels : 0);
    return 0;
}

char *corrections_workspaces(const struct corrections *c)
{
    size_t rows = c->convolution_count + c->workspace_count;
    char *text = rows ? xcalloc(rows, WORKSPACE_TEXT) : NULL, *at = text;

    for (uint32_t i = 0; i < c->convolution_count; i++) {
        const struct corrected_convolution *v = &c->convolutions[i];
        at += sprintf(at, "#%" PRIx64 "=%" PRIu64 ",",
                      convolution_key(v->operation, v->text, strlen(v->text)),
                      v->run_bytes);
    }
    for (uint32_t i = 0; i < c->workspace_count; i++)
        at += sprintf(at, "%" PRIu64 "=%" PRIu64 ",",
                      c->workspaces[i].estimate_bytes,
                      c->workspaces[i].run_bytes);
    return text;
}

char *corrections_scale(const struct corrections *c)
{
    char *text = xstrdup("");

    for (int f = 0; f < WORK_FAMILIES; f++) {
        if (!(c->scale[f] > 0))
            continue;
        char *more = xasprintf("%s%s%s=%.4f", text, *text ? "," : "",
                               work_family_name((enum work_family)f),
                               c->scale[f]);
        free(text);
        text = more;
    }
    if (*text)
        return text;
    free(text);
    return NULL;
}
