/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost_image.h"
#include "runtime/cost/cost_features.h"

#include <math.h>
#include <string.h>

/* A band wider than this says nothing. */
#define BAND_MAX 100.0
#define WEIGHT_MAX 1e12

static const void *image_part(const struct cost_image *image, uint32_t at)
{
    return (const char *)image + at;
}

static bool lies_within(const struct cost_image *image, uint32_t at,
                        uint64_t bytes)
{
    return at >= sizeof *image && at % 8 == 0 && at + bytes <= image->bytes;
}

static const char *check_state(const struct cost_model *m, const void *state)
{
    switch (m->kind) {
    case COST_LINE:
        return cost_roofline_check(state, m->bytes);
    case COST_SEGMENTS:
        return cost_segments_check(state, m->bytes);
    case COST_TREES:
        return cost_trees_check(state, m->bytes);
    default:
        return "a model is of a kind that memsim does not know";
    }
}

static const char *check_model(const struct cost_image *image,
                               const struct cost_model *m)
{
    if (m->family >= WORK_FAMILIES || m->basis >= COST_BASES)
        return "a model is for work that memsim does not know";
    if (!(m->low > 0) || !(m->low <= 1) || !(m->high >= 1) ||
        !(m->high <= BAND_MAX))
        return "a model's band does not surround its price";
    if (!(m->weight >= 0 && m->weight <= WEIGHT_MAX))
        return "a model's weight is negative or too large";
    if (!lies_within(image, m->at, m->bytes))
        return "a model lies outside the image";
    return check_state(m, image_part(image, m->at));
}

static const char *check_table(const struct cost_image *image)
{
    const struct cost_entry *table = image_part(image, image->table_at);
    uint32_t used = 0;

    if (image->table_slots & (image->table_slots - 1))
        return "the table's size is no power of 2";
    if (!lies_within(image, image->table_at,
                     (uint64_t)image->table_slots * sizeof *table))
        return "the table lies outside the image";
    for (uint32_t i = 0; i < image->table_slots; i++) {
        used += table[i].key != 0;
        if (table[i].key && !(table[i].ns > 0 && isfinite(table[i].ns)))
            return "a measured time is not above 0";
    }
    /* a free slot ends every search */
    return used < image->table_slots ? NULL : "the table is full";
}

const char *cost_image_check(const struct cost_image *image, size_t size)
{
    if (size < sizeof *image || image->magic != COST_IMAGE_MAGIC)
        return "not an image of costs";
    if (image->version != COST_IMAGE_VERSION)
        return "an image of another version";
    if (image->bytes > size || !memchr(image->gpu, 0, sizeof image->gpu))
        return "the image is cut short";
    if (!lies_within(image, image->models_at,
                     (uint64_t)image->model_count * sizeof(struct cost_model)))
        return "the models lie outside the image";

    const struct cost_model *models = image_part(image, image->models_at);
    for (uint32_t i = 0; i < image->model_count; i++) {
        const char *wrong = check_model(image, &models[i]);

        if (wrong)
            return wrong;
    }
    return image->table_slots ? check_table(image) : NULL;
}

static bool model_answers(const struct cost_model *m, const struct work *work)
{
    return m->family == work->family && (m->types >> work->type & 1) &&
           (m->variants >> work_variant(work) & 1);
}

const struct cost_model *cost_image_model(const struct cost_image *image,
                                          const struct work *work)
{
    const struct cost_model *models = image_part(image, image->models_at);

    for (uint32_t i = 0; i < image->model_count; i++)
        if (model_answers(&models[i], work))
            return &models[i];
    return NULL;
}

const struct cost_model *cost_image_blend(const struct cost_image *image,
                                          const struct cost_model *m,
                                          const struct work *work)
{
    const struct cost_model *models = image_part(image, image->models_at);
    const struct cost_model *end = models + image->model_count;

    if (!(m->weight > 0))
        return NULL;
    for (m++; m < end; m++)
        if (m->weight > 0 && model_answers(m, work))
            return m;
    return NULL;
}

int cost_image_find(const struct cost_image *image, const struct work *work,
                    double *ns)
{
    return cost_image_find_key(
        image, image->table_slots ? cost_shape_key(work) : 0, ns);
}

uint64_t cost_kernel_key(uint64_t name, const uint32_t grid[3],
                         const uint32_t block[3])
{
    const uint64_t words[] = {name,    grid[0],  grid[1], grid[2],
                              block[0], block[1], block[2]};

    return cost_words_key(WORK_NOTHING, WORK_TYPES, words,
                          sizeof words / sizeof *words);
}

uint64_t cost_name_key(uint64_t name)
{
    const uint32_t none[3] = {0, 0, 0};

    return cost_kernel_key(name, none, none);
}

int cost_image_find_key(const struct cost_image *image, uint64_t key,
                        double *ns)
{
    const struct cost_entry *table = image_part(image, image->table_at);
    uint32_t mask = image->table_slots - 1;

    if (!image->table_slots || !key)
        return -1;
    for (uint32_t i = (uint32_t)key & mask; table[i].key; i = (i + 1) & mask)
        if (table[i].key == key) {
            *ns = table[i].ns;
            return 0;
        }
    return -1;
}
