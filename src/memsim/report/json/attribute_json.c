/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/json/attribute_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "common/base/json_add.h"

#define MODULES_MAX 10000
#define BLOCKS_MAX  50000 /* of all segments */

/* Addresses and stream handles may pass 2^53, where readers' doubles end. */
static void add_address(cJSON *object, const char *name, uint64_t address)
{
    char digits[24];

    snprintf(digits, sizeof digits, "0x%" PRIx64, address);
    cJSON_AddStringToObject(object, name, digits);
}

/* Only the categories that hold something. */
static void add_sums(cJSON *object, const char *name,
                     const struct attribution_sums *sums)
{
    cJSON *categories = cJSON_AddObjectToObject(object, name);

    for (size_t i = 0; i < TRACE_CATEGORY_COUNT; i++)
        if (sums->bytes[i])
            json_add_bytes(categories,
                           attribution_category_name((enum trace_category)i),
                           sums->bytes[i]);
}

static const char *module_name(const struct attribution *a, size_t module)
{
    return module == SIZE_MAX ? "" : a->modules[module].name;
}

/* What no module was at work for, as a module of its own: all the rest. */
static struct attribution_module outside_module(const struct attribution *a)
{
    struct attribution_module rest = {.name = (char *)"", .self = a->at_peak};

    for (size_t i = 0; i < a->module_count; i++)
        for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++)
            rest.self.bytes[c] -= a->modules[i].self.bytes[c];
    rest.self_bytes = attribution_sum(&rest.self);
    return rest;
}

static int owner_compare(const void *x, const void *y)
{
    const struct attribution_module *a = *(struct attribution_module *const *)x;
    const struct attribution_module *b = *(struct attribution_module *const *)y;

    if (a->self_bytes != b->self_bytes)
        return a->self_bytes < b->self_bytes ? 1 : -1;
    return strcmp(a->name, b->name);
}

static void add_owners(cJSON *device, const struct attribution *a)
{
    struct attribution_module rest = outside_module(a);
    const struct attribution_module **owners =
        xcalloc(a->module_count + 1, sizeof *owners);
    size_t count = 0;

    for (size_t i = 0; i < a->module_count; i++)
        if (a->modules[i].self_bytes)
            owners[count++] = &a->modules[i];
    if (rest.self_bytes)
        owners[count++] = &rest;
    qsort(owners, count, sizeof *owners, owner_compare);
    cJSON *array = cJSON_AddArrayToObject(device, "modules_at_peak");
    for (size_t i = 0; i < count && i < MODULES_MAX; i++) {
        cJSON *owner = json_add_object(array);
        cJSON_AddStringToObject(owner, "name", owners[i]->name);
        json_add_bytes(owner, "bytes", owners[i]->self_bytes);
        add_sums(owner, "categories", &owners[i]->self);
    }
    if (count > MODULES_MAX)
        json_add_uint(device, "modules_at_peak_dropped", count - MODULES_MAX);
    free(owners);
}

static int module_compare(const void *x, const void *y)
{
    const struct attribution_module *a = *(struct attribution_module *const *)x;
    const struct attribution_module *b = *(struct attribution_module *const *)y;

    if (a->own_peak_bytes != b->own_peak_bytes)
        return a->own_peak_bytes < b->own_peak_bytes ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* What MODULE held when the phases ended of which that was kept; nothing where
 * it never held any. */
static void add_phase_ends(cJSON *object, const struct attribution *a,
                           size_t module)
{
    cJSON *ends = cJSON_CreateArray();
    bool any = false;

    for (size_t i = 0; i < a->phase_count; i++) {
        const uint64_t *bytes = a->phases[i].module_bytes;
        if (!bytes)
            continue;
        any |= bytes[module] != 0;
        json_append_uint(ends, bytes[module]);
    }
    if (any)
        cJSON_AddItemToObject(object, "phase_end_bytes", ends);
    else
        cJSON_Delete(ends);
}

static void add_modules(cJSON *device, const struct attribution *a)
{
    const struct attribution_module **modules =
        xcalloc(a->module_count + 1, sizeof *modules);

    for (size_t i = 0; i < a->module_count; i++)
        modules[i] = &a->modules[i];
    qsort(modules, a->module_count, sizeof *modules, module_compare);
    cJSON *array = cJSON_AddArrayToObject(device, "modules");
    for (size_t i = 0; i < a->module_count && i < MODULES_MAX; i++) {
        cJSON *module = json_add_object(array);
        cJSON_AddStringToObject(module, "name", modules[i]->name);
        if (modules[i]->parent != SIZE_MAX)
            cJSON_AddStringToObject(module, "parent",
                                    module_name(a, modules[i]->parent));
        json_add_bytes(module, "bytes_at_peak", modules[i]->bytes_at_peak);
        json_add_bytes(module, "self_bytes_at_peak", modules[i]->self_bytes);
        json_add_bytes(module, "own_peak_bytes", modules[i]->own_peak_bytes);
        json_add_uint(module, "calls", modules[i]->calls);
        add_phase_ends(module, a, (size_t)(modules[i] - a->modules));
    }
    if (a->module_count > MODULES_MAX)
        json_add_uint(device, "modules_dropped",
                       a->module_count - MODULES_MAX);
    free(modules);
}

static void add_phases(cJSON *device, const struct attribution *a)
{
    cJSON *array = cJSON_AddArrayToObject(device, "phases");

    for (size_t i = 0; i < a->phase_count; i++) {
        const struct attribution_phase *p = &a->phases[i];
        cJSON *phase = json_add_object(array);
        json_add_uint(phase, "step", p->step);
        cJSON_AddStringToObject(phase, "phase",
                                attribution_phase_name(p->phase));
        json_add_uint(phase, "start_ns", p->start_ns);
        json_add_uint(phase, "end_ns", p->end_ns);
        json_add_bytes(phase, "peak_bytes", p->peak_bytes);
        json_add_bytes(phase, "end_bytes", attribution_sum(&p->end));
        add_sums(phase, "end_categories", &p->end);
    }
    json_add_uint(device, "phases_dropped", a->phases_dropped);
    cJSON *kept = cJSON_AddArrayToObject(device, "module_phases");
    for (size_t i = 0; i < a->phase_count; i++)
        if (a->phases[i].module_bytes)
            json_append_uint(kept, i);
}

cJSON *attribute_json_point(cJSON *array, const struct attribution_point *p)
{
    cJSON *point = json_add_object(array);

    json_add_uint(point, "time_ns", p->time_ns);
    json_add_bytes(point, "allocated", attribution_sum(&p->sums));
    json_add_bytes(point, "reserved", p->reserved_bytes);
    add_sums(point, "categories", &p->sums);
    return point;
}

static void add_timeline(cJSON *device, const struct attribution *a)
{
    cJSON *array = cJSON_AddArrayToObject(device, "timeline");

    for (size_t i = 0; i < a->point_count; i++)
        attribute_json_point(array, &a->points[i]);
    json_add_bytes(device, "timeline_resolution_bytes", a->point_bytes);
}

/* The stacks that blocks have, each once, in the order of the blocks. */
struct stacks {
    cJSON *array;
    struct map places; /* 1 + its place, by a hash of the text */
    size_t count;
};

static void add_stack(cJSON *block, struct stacks *stacks, const char *stack)
{
    uint64_t key = hash_text(HASH_START, stack);
    uintptr_t place = (uintptr_t)map_get(&stacks->places, key);

    if (!place) {
        place = ++stacks->count;
        map_put(&stacks->places, key, (void *)place);
        cJSON_AddItemToArray(stacks->array, cJSON_CreateString(stack));
    }
    json_add_uint(block, "stack", place - 1);
}

void attribute_json_shape(cJSON *object, const char *shape)
{
    size_t length = strcspn(shape, " ");
    char dtype[24];

    if (!*shape)
        return;
    snprintf(dtype, sizeof dtype, "%.*s", (int)length, shape);
    cJSON_AddStringToObject(object, "dtype", dtype);
    cJSON *dims = cJSON_AddArrayToObject(object, "shape");
    for (const char *at = shape + length; *at;) {
        char *end;
        uint64_t dim = strtoull(at + 1, &end, 10);

        if (end == at + 1)
            return;
        json_append_uint(dims, dim);
        at = end;
    }
}

static void add_block(cJSON *array, const struct attribution *a,
                      const struct attribution_block *b, uint64_t base,
                      struct stacks *stacks)
{
    cJSON *block = json_add_object(array);

    json_add_bytes(block, "offset", b->address - base);
    json_add_bytes(block, "bytes", b->bytes);
    cJSON_AddStringToObject(block, "state",
                            b->allocated ? "allocated" : "free");
    if (!b->allocated)
        return;
    cJSON_AddStringToObject(block, "module", module_name(a, b->module));
    cJSON_AddStringToObject(block, "category",
                            attribution_category_name(b->category));
    cJSON_AddStringToObject(block, "label", b->label);
    if (b->operation)
        cJSON_AddStringToObject(block, "operator", b->operation);
    if (b->name)
        cJSON_AddStringToObject(block, "name", b->name);
    if (b->shape)
        attribute_json_shape(block, b->shape);
    if (b->stack)
        add_stack(block, stacks, b->stack);
}

/* What is free in a segment, of all its blocks, named as a replay does. */
static void add_cached(cJSON *segment, const struct attribution_segment *s,
                       const struct attribution_block *blocks)
{
    uint64_t free_bytes = 0, largest = 0, pieces = 0;

    for (size_t i = 0; i < s->count; i++) {
        if (blocks[i].allocated)
            continue;
        free_bytes += blocks[i].bytes;
        largest = blocks[i].bytes > largest ? blocks[i].bytes : largest;
        pieces++;
    }
    json_add_bytes(segment, "allocated_bytes", s->bytes - free_bytes);
    json_add_bytes(segment, "largest_cached_bytes", largest);
    json_add_uint(segment, "cached_pieces", pieces);
}

static void add_segments(cJSON *device, const struct attribution *a)
{
    cJSON *array = cJSON_AddArrayToObject(device, "segments_at_peak");
    struct stacks stacks = {.array = cJSON_CreateArray()};
    size_t told = 0;

    for (size_t i = 0; i < a->segment_count; i++) {
        const struct attribution_segment *s = &a->segments[i];
        cJSON *segment = json_add_object(array);
        char pool[48];
        snprintf(pool, sizeof pool, "%" PRIu64 ",%" PRIu64, s->pool[0],
                 s->pool[1]);
        add_address(segment, "address", s->address);
        json_add_bytes(segment, "bytes", s->bytes);
        add_address(segment, "stream", s->stream);
        cJSON_AddStringToObject(segment, "pool", pool);
        add_cached(segment, s, &a->blocks[s->first]);
        cJSON *blocks = cJSON_AddArrayToObject(segment, "blocks");
        size_t room = BLOCKS_MAX - told;
        size_t count = s->count < room ? s->count : room;
        for (size_t j = 0; j < count; j++)
            add_block(blocks, a, &a->blocks[s->first + j], s->address,
                      &stacks);
        if (count < s->count)
            json_add_uint(segment, "blocks_dropped", s->count - count);
        told += count;
    }
    map_fini(&stacks.places);
    if (stacks.count)
        cJSON_AddItemToObject(device, "stacks", stacks.array);
    else
        cJSON_Delete(stacks.array);
}

static void add_peak(cJSON *device, const struct attribution *a)
{
    cJSON *peak = cJSON_AddObjectToObject(device, "peak");

    json_add_uint(peak, "time_ns", a->peak_ns);
    json_add_uint(peak, "step", a->peak_step);
    cJSON_AddStringToObject(peak, "phase",
                            attribution_phase_name(a->peak_phase));
    if (a->peak_episode != EPISODE_NONE)
        cJSON_AddStringToObject(peak, "episode",
                                episode_name(a->peak_episode));
}

void attribute_json_add_memory(cJSON *device,
                               const struct attribution *attribution)
{
    add_timeline(device, attribution);
    add_segments(device, attribution);
}

void attribute_json_add(cJSON *device, const struct attribution *attribution)
{
    add_peak(device, attribution);
    add_sums(device, "categories_at_peak", &attribution->at_peak);
    add_owners(device, attribution);
    add_modules(device, attribution);
    add_phases(device, attribution);
    attribute_json_add_memory(device, attribution);
}
