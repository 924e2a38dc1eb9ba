/* SPDX-License-Identifier: Apache-2.0
 * The text of a fit to a cost_build. What numbers mean is checked with the
 * image; what is looked for here is that they are all there. */
#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/json_text.h"
#include "common/base/xmalloc.h"
#include "fits/cost_build.h"
#include "runtime/cost/cost_features.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA     1
#define MAX_VALUES 4000000
#define SCALE_MAX  1e6

struct reader {
    const char *origin;
    struct err *err;
    char place[96]; /* "models[3]" */
};

static int fail(const struct reader *r, const char *what)
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
        return fail(r, text);
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
            return fail(r, "a type that memsim does not know");
        *bits |= UINT32_C(1) << at;
    }
    return *bits ? 0 : fail(r, "types are missing");
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
            return fail(r, "a variant that memsim does not know");
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

/* All numbers of a list of lists; *STARTS gets where each list begins and, as
 * its last element, where all end. */
static int read_lists(const struct reader *r, const cJSON *lists,
                      double **values, uint32_t **starts, uint32_t *count)
{
    size_t capacity = 0, total = 0;
    const cJSON *list, *item;

    *count = 0;
    *starts = xcalloc((size_t)cJSON_GetArraySize(lists) + 1, sizeof **starts);
    cJSON_ArrayForEach(list, lists)
    {
        cJSON_ArrayForEach(item, list)
        {
            if (!cJSON_IsNumber(item) || total >= MAX_VALUES)
                return fail(r, "the trees hold what is no number");
            xgrow(values, total, &capacity, sizeof **values);
            (*values)[total++] = item->valuedouble;
        }
        (*starts)[++*count] = (uint32_t)total;
    }
    return 0;
}

struct tree_lists {
    double *edges, *trees;
    uint32_t *edge_starts, *tree_starts;
    uint32_t features, tree_count;
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

    for (uint32_t i = 0; i < l->tree_count; i++) {
        uint32_t count = read_nodes(l->trees + l->tree_starts[i],
                                    l->trees + l->tree_starts[i + 1], NULL);
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
    head->feature_count = l->features;
    head->edge_count = l->edge_starts[l->features];
    head->tree_count = l->tree_count;
    *bytes =
        (uint32_t)sizeof *head + 4 * (head->feature_count + head->edge_count +
                                      head->tree_count + head->node_count);

    struct cost_trees *t = xcalloc(1, *bytes);
    uint32_t *words = (uint32_t *)(t + 1);
    *t = *head;
    for (uint32_t f = 0; f < l->features; f++)
        *words++ = l->edge_starts[f + 1] - l->edge_starts[f];
    for (uint32_t i = 0; i < t->edge_count; i++) {
        float edge = (float)l->edges[i];

        memcpy(words++, &edge, sizeof edge);
    }
    struct cost_node *nodes = (struct cost_node *)(words + t->tree_count);
    for (uint32_t i = 0, at = 0; i < t->tree_count; i++) {
        at += read_nodes(l->trees + l->tree_starts[i],
                         l->trees + l->tree_starts[i + 1], nodes + at);
        words[i] = at;
    }
    return t;
}

static void *read_trees(const struct reader *r, const cJSON *model,
                        uint32_t *bytes)
{
    const cJSON *trees = cJSON_GetObjectItem(model, "trees");
    struct cost_trees head = {.scale = 0};
    struct tree_lists l = {0};
    void *state = NULL;
    const struct number numbers[] = {{"offset", &head.offset},
                                     {"scale", &head.scale}};

    if (read_roofline(r, model, &head.line) ||
        read_numbers(r, trees, numbers, 2) ||
        read_lists(r, cJSON_GetObjectItem(trees, "edges"), &l.edges,
                   &l.edge_starts, &l.features) ||
        read_lists(r, cJSON_GetObjectItem(trees, "trees"), &l.trees,
                   &l.tree_starts, &l.tree_count))
        goto done;
    head.node_count = count_nodes(&l);
    if (!head.node_count)
        fail(r, "a tree's nodes do not add up");
    else
        state = lay_trees(&l, &head, bytes);
done:
    free(l.edges);
    free(l.trees);
    free(l.edge_starts);
    free(l.tree_starts);
    return state;
}

static void *read_state(const struct reader *r, const cJSON *model,
                        struct cost_model *m)
{
    if (m->kind == COST_TREES)
        return read_trees(r, model, &m->bytes);

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

static int read_model(const struct reader *r, const cJSON *model,
                      struct cost_build *build)
{
    struct cost_model m = {.basis = COST_FITTED};
    int family =
        find_name(json_text_of(model, "family"), WORK_FAMILIES, family_name);
    int kind = find_name(json_text_of(model, "model"), COST_KINDS, kind_name);

    const char *basis = json_text_of(model, "basis");

    if (family < 0 || kind < 0)
        return fail(r, "a family or model that memsim does not know");
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
    void *state = read_state(r, model, &m);
    if (!state)
        return -1;
    cost_build_add(build, &m, state);
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
        return fail(r, "not [family, type, ns, extents...]");
    int f = find_name(family->valuestring, WORK_FAMILIES, family_name);
    int t = find_name(type->valuestring, WORK_TYPES, type_name);
    if (f < 0 || t < 0 || !(ns->valuedouble > 0))
        return fail(r, "a family or type that memsim does not know, or a time "
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
            return fail(r, "not [name, grid x, y, z, block x, y, z, ns]");
        values[i] = item->valuedouble;
    }
    if (!cJSON_IsString(name) || item->next || !(values[6] > 0))
        return fail(r, "not [name, grid x, y, z, block x, y, z, ns]");
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
        return fail(r, "not [name, factor], a factor above 0, at most 1e6");
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
        return fail(r, "no family that memsim knows");
    if (read_number(r, json, "factor", &s.factor) ||
        read_number(r, json, "low", &s.low) ||
        read_number(r, json, "high", &s.high))
        return -1;
    if (!(s.factor > 0) || !(s.low > 0) || !(s.low <= 1) || !(s.high >= 1) ||
        s.factor > SCALE_MAX || s.high > SCALE_MAX)
        return fail(r, "factor and low must be above 0, low at most 1, high at "
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
        return fail(r, "not a fit of operators; `memsim fit' writes them");
    if (read_number(r, root, "schema", &schema))
        return -1;
    if (schema != SCHEMA)
        return fail(r, "a fit of another schema than 1; write it anew with "
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
              struct cost_build *build, struct err *err)
{
    struct reader r = {.origin = origin, .err = err};
    cJSON *root = json_text_parse(json, length, origin, err);

    if (!root)
        return -1;
    int rc = read_root(&r, root, build);
    cJSON_Delete(root);
    return rc;
}
