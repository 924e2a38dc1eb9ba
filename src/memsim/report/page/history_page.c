/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/page/history_page.h"

#include <stdlib.h>

#include "common/base/json_add.h"
#include "common/base/xmalloc.h"
#include "memsim/attribution/history.h"
#include "memsim/report/json/attribute_json.h"

struct lives {
    const struct history *history;
    const struct attribution *of;
    size_t texts; /* names: those, then the modules, then the categories */
};

typedef double life_value(const struct lives *l, const struct history_block *b);

static double life_address(const struct lives *l, const struct history_block *b)
{
    (void)l;
    return (double)b->address;
}

static double life_bytes(const struct lives *l, const struct history_block *b)
{
    (void)l;
    return (double)b->bytes;
}

static double life_born(const struct lives *l, const struct history_block *b)
{
    return (double)history_place(l->history, b->born);
}

static double life_died(const struct lives *l, const struct history_block *b)
{
    return b->died == UINT64_MAX ? -1
                                 : (double)history_place(l->history, b->died);
}

static double life_born_ns(const struct lives *l, const struct history_block *b)
{
    (void)l;
    return (double)b->born_ns;
}

static double life_died_ns(const struct lives *l, const struct history_block *b)
{
    (void)l;
    return b->died == UINT64_MAX ? -1 : (double)b->died_ns;
}

static double life_operator(const struct lives *l,
                            const struct history_block *b)
{
    (void)l;
    return (double)b->operation - 1;
}

static double life_stack(const struct lives *l, const struct history_block *b)
{
    (void)l;
    return (double)b->stack - 1;
}

static double life_module(const struct lives *l, const struct history_block *b)
{
    return b->module ? (double)(l->texts + b->module - 1) : -1;
}

static double life_category(const struct lives *l,
                            const struct history_block *b)
{
    return (double)(l->texts + l->of->module_count + b->category);
}

static void add_column(cJSON *object, const char *name, const struct lives *l,
                       life_value *value)
{
    const struct history *h = l->history;
    double *values = xcalloc(h->count + 1, sizeof *values);

    for (size_t i = 0; i < h->count; i++)
        values[i] = value(l, &h->blocks[i]);
    cJSON_AddItemToObject(object, name,
                          cJSON_CreateDoubleArray(values, (int)h->count));
    free(values);
}

static void add_blocks(cJSON *object, const struct lives *l)
{
    cJSON *blocks = cJSON_AddObjectToObject(object, "blocks");

    add_column(blocks, "address", l, life_address);
    add_column(blocks, "bytes", l, life_bytes);
    add_column(blocks, "born", l, life_born);
    add_column(blocks, "died", l, life_died);
    add_column(blocks, "born_ns", l, life_born_ns);
    add_column(blocks, "died_ns", l, life_died_ns);
    add_column(blocks, "operator", l, life_operator);
    add_column(blocks, "stack", l, life_stack);
    add_column(blocks, "module", l, life_module);
    add_column(blocks, "category", l, life_category);
}

static void add_names(cJSON *object, const struct lives *l)
{
    cJSON *names = cJSON_AddArrayToObject(object, "names");

    for (size_t i = 0; i < l->texts; i++)
        cJSON_AddItemToArray(names, cJSON_CreateString(l->of->lives.texts[i]));
    for (size_t i = 0; i < l->of->module_count; i++)
        cJSON_AddItemToArray(names, cJSON_CreateString(l->of->modules[i].name));
    for (size_t i = 0; i < TRACE_CATEGORY_COUNT; i++)
        cJSON_AddItemToArray(
            names, cJSON_CreateString(
                       attribution_category_name((enum trace_category)i)));
}

static void add_runs(cJSON *object, const struct history *h)
{
    cJSON *runs = cJSON_AddArrayToObject(object, "runs");

    for (size_t i = 0; i < h->run_count; i++) {
        const struct history_run *run = &h->runs[i];
        cJSON *row = json_add_object(runs);
        if (run->step != HISTORY_BEFORE)
            json_add_uint(row, "step", run->step);
        json_add_uint(row, "count", run->count);
        json_add_uint(row, "begin", history_place(h, run->begin));
        json_add_uint(row, "end", history_place(h, run->first_end));
        json_add_uint(row, "begin_ns", run->begin_ns);
        json_add_uint(row, "first_end_ns", run->first_end_ns);
        json_add_uint(row, "end_ns", run->end_ns);
    }
}

static void add_points(cJSON *object, const struct lives *l)
{
    cJSON *points = cJSON_AddArrayToObject(object, "points");

    for (size_t i = 0; i < l->of->lives.point_count; i++) {
        const struct attribution_point *p = &l->of->lives.points[i];
        cJSON *point = attribute_json_point(points, p);
        json_add_uint(point, "event", history_place(l->history, p->events));
    }
}

void history_page_add(cJSON *device, const struct attribution *attribution)
{
    if (!attribution || !attribution->lives.history)
        return;
    struct lives l = {attribution->lives.history, attribution,
                      attribution->lives.text_count};
    cJSON *object = cJSON_AddObjectToObject(device, "history");

    add_runs(object, l.history);
    add_points(object, &l);
    add_names(object, &l);
    add_blocks(object, &l);
    json_add_uint(object, "peak_event",
                  history_place(l.history, l.history->peak_event));
    json_add_bytes(object, "least_bytes", l.history->least_bytes);
    json_add_uint(object, "left_out", l.history->left_out);
}
