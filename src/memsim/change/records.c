/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"

#define RECORDS_MAX (8u << 20) /* 2 GB with their fields */

/* What reading needs beside. */
struct reading {
    struct records *r;
    struct step_finder *finder;
    uint64_t *ordinals; /* of records, by index */
    size_t ordinal_capacity;
    struct map requested; /* bytes + 1 of blocks by address */
    struct map known;     /* addresses of parameters */
    uint32_t phase;
    uint64_t allocated_bytes;
};

uint64_t *records_fields(const struct records *r, const struct record *record)
{
    return r->words + record->fields;
}

const char *records_text(const struct records *r, const struct record *record)
{
    return r->texts + record->text;
}

const char *records_module(const struct records *r, uint64_t module)
{
    for (size_t i = 0; i < r->module_count; i++)
        if (r->modules[i].module == module)
            return trace_names_get(&r->names, r->modules[i].name);
    return "";
}

size_t records_add(struct records *r, const struct record *from,
                   const uint64_t *fields, const char *text)
{
    struct record *to;

    xgrow(&r->all, r->count, &r->capacity, sizeof *r->all);
    to = &r->all[r->count];
    *to = *from;
    to->fields = r->words_count;
    for (size_t i = 0; i < TRACE_FIELDS_MAX; i++) {
        xgrow(&r->words, r->words_count, &r->words_capacity, sizeof *r->words);
        r->words[r->words_count++] = fields[i];
    }
    to->text = r->texts_count;
    for (size_t i = 0; i < from->text_bytes; i++) {
        xgrow(&r->texts, r->texts_count, &r->texts_capacity, 1);
        r->texts[r->texts_count++] = text[i];
    }
    return r->count++;
}

/* Another end is written; allocations of blocks stay: they say which module is
 * at work. So do parameters, for a change of what is written. */
static bool is_dropped(const struct trace_item *item)
{
    unsigned kind = item->head.kind;

    if (kind == TRACE_STORAGE)
        return trace_as_storage(item)->category != TRACE_CATEGORY_PARAMETER;
    return kind == TRACE_END || trace_kind_for(kind) == TRACE_FOR_MEMORY;
}

static void take_storage(struct reading *g, const struct trace_item *item)
{
    const struct trace_storage *s = trace_as_storage(item);
    uintptr_t bytes = (uintptr_t)map_get(&g->requested, s->address);
    struct records *r = g->r;

    if (s->category != TRACE_CATEGORY_PARAMETER || !bytes ||
        !s->element_bytes || map_get(&g->known, s->address))
        return;
    map_put(&g->known, s->address, g);
    xgrow(&r->parameters, r->parameter_count, &r->parameter_capacity,
          sizeof *r->parameters);
    r->parameters[r->parameter_count++] =
        (struct parameter){
        s->module, (bytes - 1) / s->element_bytes, s->element_bytes};
}

static void take_value(struct reading *g, uint64_t address, uint64_t module,
                       bool is_output)
{
    uintptr_t bytes = (uintptr_t)map_get(&g->requested, address);
    struct records *r = g->r;

    xgrow(&r->values, r->value_count, &r->value_capacity, sizeof *r->values);
    r->values[r->value_count++] = (struct module_value){
        module, bytes ? bytes - 1 : 0, r->count, is_output};
}

static void take_module(struct records *r, const struct trace_item *item)
{
    const struct trace_module *m = trace_as_module(item);

    xgrow(&r->modules, r->module_count, &r->module_capacity,
          sizeof *r->modules);
    r->modules[r->module_count++] =
        (struct module_name){m->module, m->root, m->name};
}

static void take_setting(struct records *r, const struct trace_item *item)
{
    static const char key[] = "torch=";
    size_t at = sizeof key - 1;

    r->imported = r->imported || trace_says_imported(item);
    if (item->head.text_bytes > at && !memcmp(item->text, key, at))
        snprintf(r->torch, sizeof r->torch, "%.*s",
                 (int)(item->head.text_bytes - at), item->text + at);
}

static void take_notes(struct reading *g, const struct trace_item *item)
{
    const struct trace_block_alloc *alloc;

    switch (item->head.kind) {
    case TRACE_NAME:
        trace_names_add(&g->r->names, item);
        break;
    case TRACE_PHASE:
        g->phase = (uint32_t)trace_as_phase(item)->phase;
        break;
    case TRACE_BLOCK_ALLOC:
        alloc = trace_as_block_alloc(item);
        map_put(&g->requested, alloc->address,
                (void *)(uintptr_t)(alloc->requested_bytes + 1));
        g->allocated_bytes = alloc->allocated_bytes;
        break;
    case TRACE_BLOCK_FREE:
        g->allocated_bytes = trace_as_block_free(item)->allocated_bytes;
        break;
    case TRACE_INPUT:
        take_value(g, trace_as_input(item)->address,
                   trace_as_input(item)->module, false);
        break;
    case TRACE_OUTPUT:
        take_value(g, trace_as_output(item)->address,
                   trace_as_output(item)->module, true);
        break;
    case TRACE_STORAGE:
        take_storage(g, item);
        break;
    case TRACE_MODULE:
        take_module(g->r, item);
        break;
    case TRACE_SETTING:
        take_setting(g->r, item);
        break;
    default:
        break;
    }
}

static int record_take(struct reading *g, const struct trace_item *item,
                       const char *path, struct err *err)
{
    struct record record = {.kind = (enum trace_kind)item->head.kind,
                            .thread = item->head.thread,
                            .field_count = item->head.fields,
                            .text_bytes = item->head.text_bytes,
                            .time_ns = item->head.time_ns};

    step_finder_take(g->finder, item);
    take_notes(g, item);
    if (is_dropped(item))
        return 0;
    if (g->r->count >= RECORDS_MAX)
        return err_set(err,
                       "%s: more than %u records; record fewer steps to "
                       "change the job",
                       path, RECORDS_MAX);
    record.phase = g->phase;
    record.allocated_bytes = g->allocated_bytes;
    xgrow(&g->ordinals, g->r->count, &g->ordinal_capacity, sizeof *g->ordinals);
    g->ordinals[g->r->count] = item->ordinal;
    records_add(g->r, &record, item->fields, item->text);
    return 0;
}

/* The first record whose ordinal is not below ORDINAL. */
static uint64_t index_of(const struct reading *g, uint64_t ordinal)
{
    return BISECT(i, g->r->count, g->ordinals[i] < ordinal);
}

int records_read(struct records *r, const char *path, struct err *err)
{
    struct reading g = {.r = r, .finder = step_finder_create()};
    struct trace_reader reader;
    struct trace_item item;
    int rc;

    *r = (struct records){.count = 0};
    rc = trace_reader_open(&reader, path, err);
    if (!rc) {
        while ((rc = trace_reader_next(&reader, &item, err)) > 0)
            if (record_take(&g, &item, path, err)) {
                rc = -1;
                break;
            }
        trace_reader_close(&reader);
    }
    step_finder_conclude(g.finder, &r->steps);
    for (size_t i = 0; i < r->steps.count; i++) {
        r->steps.steps[i].first = index_of(&g, r->steps.steps[i].first);
        r->steps.steps[i].end = index_of(&g, r->steps.steps[i].end);
    }
    free(g.ordinals);
    map_fini(&g.requested);
    map_fini(&g.known);
    if (rc)
        records_fini(r);
    return rc;
}

void records_fini(struct records *r)
{
    free(r->all);
    free(r->words);
    free(r->texts);
    free(r->parameters);
    free(r->modules);
    free(r->values);
    step_list_fini(&r->steps);
    trace_names_fini(&r->names);
}
