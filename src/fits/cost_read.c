/* SPDX-License-Identifier: Apache-2.0
 * The text of a fit to a cost_build. What numbers mean is checked with the
 * image; what is looked for here is that they are all there. */
#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/json_text.h"
#include "common/base/xmalloc.h"
#include "fits/cost_build.h"
#include "fits/cost_lists.h"
#include "runtime/cost/cost_features.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA    1
#define SCALE_MAX 1e6

struct reader {
    const char *origin;
    struct err *err;
    const struct cost_lists *lists;
    const struct cost_need *need; /* NULL: all */
    char place[96]; /* "models[3]" */
};

static int fit_fail(const struct reader *r, const char *what)
{
    return err_set(r->err, "%s: %s%s%s", r->origin, r->place,
                   r->place[0] ? ": " : "", what);
}

static int read_number(const struct reader *r, const cJSON *object,
                       const char *key, double *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) {
        char text[64];

        snprintf(text, sizeof text, "%s is missing or no number", key);
        return fit_fail(r, text);
    }
    *value = item->valuedouble;
    return 0;
}

struct number {
    const char *key;
    double *value;
};

static int read_numbers(const struct reader *r, const cJSON *object,
                        const struct number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (read_number(r, object, numbers[i].key, numbers[i].value))
            return -1;
    return 0;
}

/* The place of NAME among COUNT names; -1: not among them. */
static int find_name(const char *name, int count, const char *(*name_of)(int))
{
    for (int i = 0; i < count; i++)
        if (!strcmp(name_of(i), name))
            return i;
    return -1;
}

static const char *family_name(int i)
{
    return work_family_name(i);
}

static const char *type_name(int i)
{
    return work_type_name(i);
}

static const char *kind_name(int i)
{
    return cost_kind_ops(i)->name;
}

static int read_types(const struct reader *r, const cJSON *list, uint32_t *bits)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list)
    {
        int at = cJSON_IsString(item)
                     ? find_name(item->valuestring, WORK_TYPES, type_name)
                     : -1;

        if (at < 0)
            return fit_fail(r, "a type that memsim does not know");
        *bits |= UINT32_C(1) << at;
    }
    return *bits ? 0 : fit_fail(r, "types are missing");
}

static int find_variant(enum work_family family, const cJSON *item)
{
    for (unsigned v = 0; cJSON_IsString(item) && v < WORK_VARIANTS; v++) {
        const char *name = work_variant_name(family, v);

        if (name && !strcmp(name, item->valuestring))
            return (int)v;
    }
    return -1;
}

static int read_variants(const struct reader *r, const cJSON *list,
                         enum work_family family, uint32_t *bits)
{
    const cJSON *item;

    if (!list)
        *bits = UINT32_MAX;
    cJSON_ArrayForEach(item, list)
    {
        int at = find_variant(family, item);

        if (at < 0)
            return fit_fail(r, "a variant that memsim does not know");
        *bits |= UINT32_C(1) << at;
    }
    return 0;
}

static int read_roofline(const struct reader *r, const cJSON *model,
                         struct cost_roofline *line)
{
    const struct number numbers[] = {{"floor_ns", &line->floor_ns},
                                     {"compute", &line->compute},
                                     {"memory", &line->memory}};

    return read_numbers(r, cJSON_GetObjectItem(model, "roofline"), numbers, 3);
}

static int read_segments(const struct reader *r, const cJSON *model,
                         struct cost_segments *s)
{
    const struct number numbers[] = {{"k1", &s->k1}, {"k2", &s->k2},
                                     {"y1", &s->y1}, {"y2", &s->y2},
                                     {"b1", &s->b1}, {"least", &s->least}};

    return read_numbers(r, cJSON_GetObjectItem(model, "segments"), numbers, 6);
}

struct tree_lists {
    struct cost_numbers edges, trees;
};

static bool in_range(double value, double low, double high)
{
    return value >= low && value <= high;
}

/* A leaf is "-1, value". */
static bool read_leaf(const double *from, struct cost_node *node)
{
    if (!in_range(from[1], -32768, 32767))
        return false;
    *node = (struct cost_node){COST_LEAF, 0, (uint16_t)(int16_t)from[1]};
    return true;
}

/* Another node is "feature, cut, child". */
static bool read_branch(const double *from, struct cost_node *node)
{
    if (from[0] >= COST_LEAF || !in_range(from[1], 0, 255) ||
        !in_range(from[2], 0, 65535))
        return false;
    *node = (struct cost_node){(uint8_t)from[0], (uint8_t)from[1],
                               (uint16_t)from[2]};
    return true;
}

/* Writes the nodes to NODES unless that is NULL; returns how many there are, 0
 * where they do not add up. */
static uint32_t read_nodes(const double *from, const double *end,
                           struct cost_node *nodes)
{
    uint32_t count = 0;

    for (; from < end; count++) {
        bool leaf = from[0] < 0;
        ptrdiff_t numbers = leaf ? 2 : 3;
        struct cost_node node;

        if (end - from < numbers ||
            !(leaf ? read_leaf(from, &node) : read_branch(from, &node)))
            return 0;
        if (nodes)
            nodes[count] = node;
        from += numbers;
    }
    return count;
}

static uint32_t count_nodes(const struct tree_lists *l)
{
    uint32_t total = 0;

    const struct cost_numbers *t = &l->trees;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t count = read_nodes(t->values + t->starts[i],
                                    t->values + t->starts[i + 1], NULL);
        if (!count)
            return 0;
        total += count;
    }
    return total;
}

/* Lays the lists out behind HEAD (see struct cost_trees). */
static void *lay_trees(const struct tree_lists *l, struct cost_trees *head,
                       uint32_t *bytes)
{
    const struct cost_numbers *edges = &l->edges, *trees = &l->trees;

    head->feature_count = edges->count;
    head->edge_count = edges->starts[edges->count];
    head->tree_count = trees->count;
    *bytes =
        (uint32_t)sizeof *head + 4 * (head->feature_count + head->edge_count +
                                      head->tree_count + head->node_count);

    struct cost_trees *t = xcalloc(1, *bytes);
    uint32_t *words = (uint32_t *)(t + 1);
    *t = *head;
    for (uint32_t f = 0; f < edges->count; f++)
        *words++ = edges->starts[f + 1] - edges->starts[f];
    for (uint32_t i = 0; i < t->edge_count; i++) {
        float edge = (float)edges->values[i];

        memcpy(words++, &edge, sizeof edge);
    }
    struct cost_node *nodes = (struct cost_node *)(words + t->tree_count);
    for (uint32_t i = 0, at = 0; i < t->tree_count; i++) {
        at += read_nodes(trees->values + trees->starts[i],
                         trees->values + trees->starts[i + 1], nodes + at);
        words[i] = at;
    }
    return t;
}

/* A tree's roofline, moved by what the trees say on average. */
static void *lay_flat(const struct cost_trees *head, struct cost_model *m)
{
    struct cost_roofline *line = xmalloc(sizeof *line);

    *line = head->line;
    line->compute /= exp(head->offset);
    line->memory /= exp(head->offset);
    m->kind = COST_LINE;
    m->bytes = sizeof *line;
    return line;
}

static void *read_trees(const struct reader *r, const cJSON *model,
                        struct cost_model *m)
{
    const cJSON *trees = cJSON_GetObjectItem(model, "trees");
    struct cost_trees head = {.scale = 0};
    struct tree_lists l = {.edges.count = 0};
    void *state = NULL;
    const struct number numbers[] = {{"offset", &head.offset},
                                     {"scale", &head.scale}};

    if (read_roofline(r, model, &head.line) ||
        read_numbers(r, trees, numbers, 2))
        return NULL;
    if (r->need && r->need->flat)
        return lay_flat(&head, m);
    if (cost_lists_read(r->lists, cJSON_GetObjectItem(trees, "edges"),
                        &l.edges) ||
        cost_lists_read(r->lists, cJSON_GetObjectItem(trees, "trees"),
                        &l.trees))
        fit_fail(r, "the trees are no lists of numbers, or too long");
    else if (!(head.node_count = count_nodes(&l)))
        fit_fail(r, "a tree's nodes do not add up");
    else
        state = lay_trees(&l, &head, &m->bytes);
    free(l.edges.values);
    free(l.edges.starts);
    free(l.trees.values);
    free(l.trees.starts);
    return state;
}

static void *read_state(const struct reader *r, const cJSON *model,
                        struct cost_model *m)
{
    if (m->kind == COST_TREES)
        return read_trees(r, model, m);

    bool segments = m->kind == COST_SEGMENTS;
    m->bytes =
        segments ? sizeof(struct cost_segments) : sizeof(struct cost_roofline);
    void *state = xcalloc(1, m->bytes);
    if (segments ? read_segments(r, model, state)
                 : read_roofline(r, model, state)) {
        free(state);
        return NULL;
    }
    return state;
}

/* Of M's variants those that KNOWN's models do not answer for in TYPE.
 * A blended model leaves room for another one. */
static uint32_t variants_left(const struct cost_build *known,
                              const struct cost_model *m, unsigned type)
{
    uint32_t left = m->types >> type & 1 ? m->variants : 0, once = 0;

    for (size_t i = 0; left && i < known->count; i++) {
        const struct cost_model *other = &known->parts[i].model;

        if (other->family != m->family || !(other->types >> type & 1))
            continue;
        if (!(m->weight > 0) || !(other->weight > 0)) {
            left &= ~other->variants;
            continue;
        }
        left &= ~(once & other->variants);
        once |= other->variants;
    }
    return left;
}

/* Whether KNOWN's models answer for all that M does. The first one that
 * answers counts, or the first two that are blended. */
static bool is_covered(const struct cost_build *known,
                       const struct cost_model *m)
{
    for (unsigned type = 0; type < WORK_TYPES; type++)
        if (variants_left(known, m, type))
            return false;
    return true;
}

static uint32_t times_of(const cJSON *model)
{
    const cJSON *errors = cJSON_GetObjectItem(model, "errors");
    const cJSON *rows = cJSON_GetObjectItem(errors, "rows");

    return cJSON_IsNumber(rows) && in_range(rows->valuedouble, 0, UINT32_MAX)
               ? (uint32_t)rows->valuedouble
               : 0;
}

static int read_model(const struct reader *r, const cJSON *model,
                      struct cost_build *build)
{
    struct cost_model m = {.basis = COST_FITTED};
    int family =
        find_name(json_text_of(model, "family"), WORK_FAMILIES, family_name);
    int kind = find_name(json_text_of(model, "model"), COST_KINDS, kind_name);

    const char *basis = json_text_of(model, "basis");

    if (family < 0 || kind < 0)
        return fit_fail(r, "a family or model that memsim does not know");
    if (!strcmp(basis, cost_basis_name(COST_ESTIMATED)))
        m.basis = COST_ESTIMATED;
    m.family = (uint32_t)family;
    m.kind = (uint32_t)kind;
    if (read_number(r, model, "low", &m.low) ||
        read_number(r, model, "high", &m.high) ||
        read_types(r, cJSON_GetObjectItem(model, "types"), &m.types) ||
        read_variants(r, cJSON_GetObjectItem(model, "variants"), family,
                      &m.variants))
        return -1;
    if (r->need && family == WORK_GEMM && kind == COST_TREES)
        m.weight = r->need->weight;
    if (r->need && is_covered(r->need->known, &m))
        return 0;
    void *state = read_state(r, model, &m);
    if (!state)
        return -1;
    cost_build_add(build, &(struct cost_part){m, state, times_of(model)});
    return 0;
}

/* ["gemm", "fp16", 7000, m, n, k, batch, layout] */
static int read_measured(const struct reader *r, const cJSON *row,
                         struct cost_build *build)
{
    uint64_t words[COST_SHAPE_WORDS];
    int count = cJSON_GetArraySize(row) - 3;
    const cJSON *family = cJSON_GetArrayItem(row, 0);
    const cJSON *type = cJSON_GetArrayItem(row, 1);
    const cJSON *ns = cJSON_GetArrayItem(row, 2);

    if (!cJSON_IsString(family) || !cJSON_IsString(type) ||
        !cJSON_IsNumber(ns) || count < 1 || count > COST_SHAPE_WORDS)
        return fit_fail(r, "not [family, type, ns, extents...]");
    int f = find_name(family->valuestring, WORK_FAMILIES, family_name);
    int t = find_name(type->valuestring, WORK_TYPES, type_name);
    if (f < 0 || t < 0 || !(ns->valuedouble > 0))
        return fit_fail(r,
                        "a family or type that memsim does not know, or a time "
                        "that is not above 0");
    const cJSON *item = ns->next;
    for (int i = 0; i < count; i++, item = item->next)
        words[i] = (uint64_t)fmax(item->valuedouble, 0);
    cost_build_measured(build, cost_words_key(f, t, words, (unsigned)count),
                        ns->valuedouble);
    return 0;
}

/* ["name", grid x, y, z, block x, y, z, ns] */
static int read_kernel(const struct reader *r, const cJSON *row,
                       struct cost_build *build)
{
    const cJSON *name = cJSON_GetArrayItem(row, 0), *item = name;
    double values[7];

    for (int i = 0; i < 7; i++) {
        item = item ? item->next : NULL;
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
            !isfinite(item->valuedouble))
            return fit_fail(r, "not [name, grid x, y, z, block x, y, z, ns]");
        values[i] = item->valuedouble;
    }
    if (!cJSON_IsString(name) || item->next || !(values[6] > 0))
        return fit_fail(r, "not [name, grid x, y, z, block x, y, z, ns]");
    uint32_t launch[6];
    for (int i = 0; i < 6; i++)
        launch[i] = (uint32_t)fmin(values[i], UINT32_MAX);
    cost_build_measured(
        build,
        cost_kernel_key(hash_text(HASH_START, name->valuestring), launch,
                        launch + 3),
        values[6]);
    build->kernel_count++;
    return 0;
}

/* ["name", factor] */
static int read_kernel_name(const struct reader *r, const cJSON *row,
                            struct cost_build *build)
{
    const cJSON *name = cJSON_GetArrayItem(row, 0);
    const cJSON *factor = cJSON_GetArrayItem(row, 1);

    if (!cJSON_IsString(name) || !cJSON_IsNumber(factor) ||
        !(factor->valuedouble > 0) || factor->valuedouble > SCALE_MAX)
        return fit_fail(r, "not [name, factor], a factor above 0, at most 1e6");
    cost_build_measured(
        build, cost_name_key(hash_text(HASH_START, name->valuestring)),
        factor->valuedouble);
    build->kernel_count++;
    return 0;
}

/* {"family": "gemm", "factor": 1.1, "low": 0.9, "high": 1.2} */
static int read_scale(const struct reader *r, const cJSON *json,
                      struct cost_build *build)
{
    int family = find_name(json_text_of(json, "family"), WORK_FAMILIES,
                           family_name);
    struct cost_scale s;

    if (family < 0)
        return fit_fail(r, "no family that memsim knows");
    if (read_number(r, json, "factor", &s.factor) ||
        read_number(r, json, "low", &s.low) ||
        read_number(r, json, "high", &s.high))
        return -1;
    if (!(s.factor > 0) || !(s.low > 0) || !(s.low <= 1) || !(s.high >= 1) ||
        s.factor > SCALE_MAX || s.high > SCALE_MAX)
        return fit_fail(
            r, "factor and low must be above 0, low at most 1, high at "
               "least 1, all at most 1e6");
    build->scales[family] = s;
    return 0;
}

typedef int read_item(const struct reader *r, const cJSON *item,
                      struct cost_build *build);

static int read_list(struct reader *r, const cJSON *root, const char *key,
                     read_item *read, struct cost_build *build)
{
    const cJSON *item, *list = cJSON_GetObjectItem(root, key);
    int i = 0;

    cJSON_ArrayForEach(item, list)
    {
        snprintf(r->place, sizeof r->place, "%s[%d]", key, i++);
        if (read(r, item, build))
            return -1;
    }
    r->place[0] = '\0';
    return 0;
}

static int read_root(struct reader *r, const cJSON *root,
                     struct cost_build *build)
{
    double schema;

    if (strcmp(json_text_of(root, "kind"), "operators"))
        return fit_fail(r, "not a fit of operators; `memsim fit' writes them");
    if (read_number(r, root, "schema", &schema))
        return -1;
    if (schema != SCHEMA)
        return fit_fail(r, "a fit of another schema than 1; write it anew with "
                           "this version's `memsim fit'");
    snprintf(build->gpu, sizeof build->gpu, "%s", json_text_of(root, "gpu"));
    return read_list(r, root, "models", read_model, build) ||
                   read_list(r, root, "table", read_measured, build) ||
                   read_list(r, root, "kernels", read_kernel, build) ||
                   read_list(r, root, "names", read_kernel_name, build) ||
                   read_list(r, root, "scales", read_scale, build)
               ? -1
               : 0;
}

int cost_read(const char *json, size_t length, const char *origin,
              const struct cost_need *need, struct cost_build *build,
              struct err *err)
{
    struct cost_lists lists;
    struct reader r = {
        .origin = origin, .err = err, .lists = &lists, .need = need};

    cost_lists_cut(&lists, json, length);
    cJSON *root = json_text_parse(lists.rest, length, origin, err);
    int rc = root ? read_root(&r, root, build) : -1;
    cJSON_Delete(root);
    cost_lists_fini(&lists);
    return rc;
}
