/* SPDX-License-Identifier: Apache-2.0 */
#include "fits/cost_build.h"
#include "common/base/err.h"
#include "common/base/xmalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 8

void cost_build_add(struct cost_build *build, const struct cost_part *part)
{
    xgrow(&build->parts, build->count, &build->capacity, sizeof *build->parts);
    build->parts[build->count++] = *part;
}

void cost_build_measured(struct cost_build *build, uint64_t key, double ns)
{
    xgrow(&build->entries, build->entry_count, &build->entry_capacity,
          sizeof *build->entries);
    build->entries[build->entry_count++] = (struct cost_entry){key, ns};
}

static uint32_t round_up(uint32_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static uint32_t count_slots(size_t entries)
{
    uint32_t slots = entries ? 4 : 0;

    while (slots && slots < 2 * entries)
        slots *= 2;
    return slots;
}

static void fill_table(const struct cost_build *build, struct cost_entry *table,
                       uint32_t slots)
{
    for (size_t i = 0; i < build->entry_count; i++) {
        uint64_t key = build->entries[i].key;
        uint32_t at = (uint32_t)key & (slots - 1);

        while (table[at].key && table[at].key != key)
            at = (at + 1) & (slots - 1);
        if (!table[at].key)
            table[at] = build->entries[i];
    }
}

struct cost_image *cost_build_image(const struct cost_build *build,
                                    const char *origin, struct err *err)
{
    uint32_t slots = count_slots(build->entry_count);
    uint32_t models_at = round_up(sizeof(struct cost_image));
    uint32_t table_at =
        models_at + (uint32_t)(build->count * sizeof(struct cost_model));
    uint32_t at = table_at + slots * (uint32_t)sizeof(struct cost_entry);
    uint32_t bytes = at;

    for (size_t i = 0; i < build->count; i++)
        bytes += round_up(build->parts[i].model.bytes);

    struct cost_image *image = xcalloc(1, bytes);
    struct cost_model *models = (void *)((char *)image + models_at);
    *image = (struct cost_image){.magic = COST_IMAGE_MAGIC,
                                 .version = COST_IMAGE_VERSION,
                                 .bytes = bytes,
                                 .model_count = (uint32_t)build->count,
                                 .models_at = models_at,
                                 .table_slots = slots,
                                 .table_at = table_at,
                                 .kernel_count = build->kernel_count};
    memcpy(image->scales, build->scales, sizeof image->scales);
    memcpy(image->gpu, build->gpu, sizeof image->gpu);
    fill_table(build, (void *)((char *)image + table_at), slots);
    for (size_t i = 0; i < build->count; i++) {
        models[i] = build->parts[i].model;
        models[i].at = at;
        memcpy((char *)image + at, build->parts[i].state, models[i].bytes);
        at += round_up(models[i].bytes);
    }
    const char *wrong = cost_image_check(image, bytes);
    if (!wrong)
        return image;
    err_set(err, "%s: %s", origin, wrong);
    free(image);
    return NULL;
}

void cost_build_fini(struct cost_build *build)
{
    for (size_t i = 0; i < build->count; i++)
        free(build->parts[i].state);
    free(build->parts);
    free(build->entries);
    *build = (struct cost_build){.gpu = ""};
}
