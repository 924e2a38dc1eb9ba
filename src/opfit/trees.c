/* SPDX-License-Identifier: Apache-2.0 */
#include "opfit/trees.h"
#include "common/base/random.h"
#include "common/base/xmalloc.h"
#include "runtime/cost/cost_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BINS       (COST_EDGES + 1)
#define LEAF_LIMIT 32000 /* of a leaf's whole number */
#define CLIP       3.0   /* residuals count up to this many medians */

struct cell {
    double weight, sum;
};

struct grown_node {
    uint32_t feature, cut, child; /* feature COST_LEAF: a leaf */
    double value;
    size_t first, count; /* of the rows in it */
    unsigned depth;
};

struct grower {
    const struct trees_data *data;
    const struct trees_options *options;
    uint32_t edge_counts[COST_FEATURES];
    float *edges[COST_FEATURES];
    uint8_t *bins; /* rows x features */
    double *fitted, *target;
    uint32_t *rows; /* those of the tree, node by node */
    size_t row_count;
    struct grown_node *nodes;
    size_t node_count, node_capacity;
    struct cell *cells; /* features x BINS */
    uint64_t random;
    struct grown_node *all; /* of every tree so far */
    size_t all_count, all_capacity;
    uint32_t *ends;
};

struct split {
    double gain;
    uint32_t feature, cut;
};

static bool draw_share(uint64_t *state, double share)
{
    return (double)(random_next(state) >> 11) * 0x1p-53 < share;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Edges between the different values of input F; where there are more than 255,
 * as many rows lie between them as possible. */
static void find_edges(struct grower *g, unsigned f)
{
    const struct trees_data *d = g->data;
    float *values = xmalloc((d->rows + 1) * sizeof *values);
    size_t different = 0;

    for (size_t i = 0; i < d->rows; i++)
        values[i] = d->x[i * d->features + f];
    qsort(values, d->rows, sizeof *values, compare_floats);
    for (size_t i = 0; i < d->rows; i++)
        if (!different || values[i] > values[different - 1])
            values[different++] = values[i];

    size_t gaps = different ? different - 1 : 0;
    size_t wanted = gaps < COST_EDGES ? gaps : COST_EDGES;
    float *edges = xmalloc((wanted + 1) * sizeof *edges);
    uint32_t count = 0;

    for (size_t i = 0; i < wanted; i++) {
        size_t at = gaps == wanted ? i : i * gaps / wanted;
        float edge = values[at] + (values[at + 1] - values[at]) / 2;

        if (!count || edge > edges[count - 1])
            edges[count++] = edge;
    }
    g->edges[f] = edges;
    g->edge_counts[f] = count;
    free(values);
}

static void bin_rows(struct grower *g)
{
    const struct trees_data *d = g->data;

    g->bins = xmalloc(d->rows * d->features + 1);
    for (size_t i = 0; i < d->rows; i++)
        for (unsigned f = 0; f < d->features; f++)
            g->bins[i * d->features + f] = cost_bin(
                g->edges[f], g->edge_counts[f], d->x[i * d->features + f]);
}

static void draw_rows(struct grower *g)
{
    g->row_count = 0;
    for (size_t i = 0; i < g->data->rows; i++)
        if (draw_share(&g->random, g->options->row_share))
            g->rows[g->row_count++] = (uint32_t)i;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* What is left over, cut to a few medians so that no outlier leads a tree. */
static void set_targets(struct grower *g)
{
    size_t n = g->data->rows;
    double *sizes = xmalloc((n + 1) * sizeof *sizes);

    for (size_t i = 0; i < n; i++) {
        g->target[i] = g->data->y[i] - g->fitted[i];
        sizes[i] = fabs(g->target[i]);
    }
    qsort(sizes, n, sizeof *sizes, compare_doubles);
    double limit = n ? CLIP * sizes[n / 2] : 0;
    for (size_t i = 0; i < n && limit > 0; i++)
        g->target[i] = fmax(-limit, fmin(limit, g->target[i]));
    free(sizes);
}

static void fill_cells(struct grower *g, const struct grown_node *node,
                       const bool *chosen)
{
    unsigned features = g->data->features;
    unsigned list[COST_FEATURES], count = 0;

    for (unsigned f = 0; f < features; f++)
        if (chosen[f])
            list[count++] = f;
    memset(g->cells, 0, features * BINS * sizeof *g->cells);
    for (size_t i = node->first; i < node->first + node->count; i++) {
        uint32_t row = g->rows[i];
        const uint8_t *bins = g->bins + (size_t)row * features;
        double weight = g->data->weight[row];
        double sum = weight * g->target[row];

        for (unsigned j = 0; j < count; j++) {
            struct cell *c = &g->cells[list[j] * BINS + bins[list[j]]];

            c->weight += weight;
            c->sum += sum;
        }
    }
}

static double score_of(const struct grower *g, double weight, double sum)
{
    return sum * sum / (weight + g->options->ridge);
}

static void try_feature(const struct grower *g, unsigned f,
                        const struct cell *whole, struct split *best)
{
    const struct cell *cells = g->cells + f * BINS;
    double weight = 0, sum = 0, least = g->options->leaf_weight;
    double before = score_of(g, whole->weight, whole->sum);

    for (uint32_t cut = 0; cut < g->edge_counts[f]; cut++) {
        weight += cells[cut].weight;
        sum += cells[cut].sum;
        if (weight < least || !cells[cut].weight)
            continue;
        if (whole->weight - weight < least)
            break;
        double gain = score_of(g, weight, sum) +
                      score_of(g, whole->weight - weight, whole->sum - sum) -
                      before;
        if (gain > best->gain)
            *best = (struct split){gain, f, cut};
    }
}

static struct cell weigh_node(const struct grower *g,
                              const struct grown_node *node)
{
    struct cell whole = {0, 0};

    for (size_t i = node->first; i < node->first + node->count; i++) {
        whole.weight += g->data->weight[g->rows[i]];
        whole.sum += g->data->weight[g->rows[i]] * g->target[g->rows[i]];
    }
    return whole;
}

static struct split find_split(struct grower *g, const struct grown_node *node,
                               const struct cell *whole)
{
    struct split best = {1e-12, COST_LEAF, 0};
    bool chosen[COST_FEATURES];

    for (unsigned f = 0; f < g->data->features; f++)
        chosen[f] = g->edge_counts[f] &&
                    draw_share(&g->random, g->options->feature_share);
    fill_cells(g, node, chosen);
    for (unsigned f = 0; f < g->data->features; f++)
        if (chosen[f])
            try_feature(g, f, whole, &best);
    return best;
}

/* Moves the rows up to the cut to the front; returns how many they are. */
static size_t part_rows(struct grower *g, const struct grown_node *node,
                        const struct split *split)
{
    unsigned features = g->data->features;
    uint32_t *rows = g->rows + node->first;
    size_t low = 0, high = node->count;

    while (low < high) {
        uint32_t row = rows[low];

        if (g->bins[(size_t)row * features + split->feature] <= split->cut) {
            low++;
        } else {
            rows[low] = rows[--high];
            rows[high] = row;
        }
    }
    return low;
}

static void add_node(struct grower *g, size_t first, size_t count,
                     unsigned depth)
{
    xgrow(&g->nodes, g->node_count, &g->node_capacity, sizeof *g->nodes);
    g->nodes[g->node_count++] = (struct grown_node){
        .feature = COST_LEAF, .first = first, .count = count, .depth = depth};
}

static void open_node(struct grower *g, size_t at)
{
    struct grown_node node = g->nodes[at];
    struct cell whole = weigh_node(g, &node);
    struct split split = {0, COST_LEAF, 0};

    node.value =
        whole.weight > 0 ? whole.sum / (whole.weight + g->options->ridge) : 0;
    if (node.depth < g->options->depth &&
        whole.weight >= 2 * g->options->leaf_weight &&
        g->node_count + 2 < LEAF_LIMIT)
        split = find_split(g, &node, &whole);
    if (split.feature != COST_LEAF) {
        size_t low = part_rows(g, &node, &split);

        node.feature = split.feature;
        node.cut = split.cut;
        node.child = (uint32_t)g->node_count;
        add_node(g, node.first, low, node.depth + 1);
        add_node(g, node.first + low, node.count - low, node.depth + 1);
    }
    g->nodes[at] = node;
}

static double walk_tree(const struct grower *g, size_t row)
{
    const uint8_t *bins = g->bins + row * g->data->features;
    size_t at = 0;

    while (g->nodes[at].feature != COST_LEAF)
        at = g->nodes[at].child +
             (bins[g->nodes[at].feature] > g->nodes[at].cut);
    return g->nodes[at].value;
}

static void keep_tree(struct grower *g, unsigned tree, double factor)
{
    for (size_t i = 0; i < g->node_count; i++) {
        g->nodes[i].value *= factor;
        xgrow(&g->all, g->all_count, &g->all_capacity, sizeof *g->all);
        g->all[g->all_count++] = g->nodes[i];
    }
    g->ends[tree] = (uint32_t)g->all_count;
}

static void grow_tree(struct grower *g, unsigned tree)
{
    const struct trees_options *o = g->options;

    draw_rows(g);
    if (!o->forest || !tree)
        set_targets(g);
    g->node_count = 0;
    add_node(g, 0, g->row_count, 0);
    for (size_t i = 0; i < g->node_count; i++)
        open_node(g, i);
    keep_tree(g, tree, o->forest ? 1.0 / o->trees : o->rate);
    if (!o->forest)
        for (size_t i = 0; i < g->data->rows; i++)
            g->fitted[i] += walk_tree(g, i);
}

static double weighted_mean(const struct trees_data *d)
{
    double sum = 0, weight = 0;

    for (size_t i = 0; i < d->rows; i++) {
        sum += d->weight[i] * d->y[i];
        weight += d->weight[i];
    }
    return weight > 0 ? sum / weight : 0;
}

static double leaf_scale(const struct grower *g)
{
    double largest = 1e-9;

    for (size_t i = 0; i < g->all_count; i++)
        if (g->all[i].feature == COST_LEAF)
            largest = fmax(largest, fabs(g->all[i].value));
    return largest / LEAF_LIMIT;
}

static void write_nodes(const struct grower *g, double scale,
                        struct cost_node *nodes)
{
    for (size_t i = 0; i < g->all_count; i++) {
        const struct grown_node *n = &g->all[i];

        nodes[i] = (struct cost_node){(uint8_t)n->feature, (uint8_t)n->cut,
                                      (uint16_t)n->child};
        if (n->feature == COST_LEAF)
            nodes[i].child = (uint16_t)(int16_t)lrint(n->value / scale);
    }
}

static struct cost_trees *write_state(const struct grower *g, double offset,
                                      const struct cost_roofline *line,
                                      size_t *size)
{
    uint32_t features = g->data->features, edges = 0;

    for (uint32_t f = 0; f < features; f++)
        edges += g->edge_counts[f];
    *size = sizeof(struct cost_trees) +
            4 * (features + edges + g->options->trees + g->all_count);
    *size = (*size + 7) / 8 * 8;

    struct cost_trees *t = xcalloc(1, *size);
    *t = (struct cost_trees){.line = *line,
                             .offset = offset,
                             .scale = leaf_scale(g),
                             .feature_count = features,
                             .edge_count = edges,
                             .tree_count = g->options->trees,
                             .node_count = (uint32_t)g->all_count};
    uint32_t *words = (uint32_t *)(t + 1);
    memcpy(words, g->edge_counts, features * sizeof *words);
    words += features;
    for (uint32_t f = 0; f < features; f++) {
        memcpy(words, g->edges[f], g->edge_counts[f] * sizeof *words);
        words += g->edge_counts[f];
    }
    memcpy(words, g->ends, t->tree_count * sizeof *words);
    write_nodes(g, t->scale, (struct cost_node *)(words + t->tree_count));
    return t;
}

static void free_grower(struct grower *g)
{
    for (unsigned f = 0; f < g->data->features; f++)
        free(g->edges[f]);
    free(g->bins);
    free(g->fitted);
    free(g->target);
    free(g->rows);
    free(g->nodes);
    free(g->cells);
    free(g->all);
    free(g->ends);
}

struct cost_trees *trees_grow(const struct trees_data *data,
                              const struct trees_options *options,
                              const struct cost_roofline *line, size_t *size)
{
    struct grower g = {
        .data = data, .options = options, .random = options->seed};
    double offset = weighted_mean(data);

    g.fitted = xmalloc((data->rows + 1) * sizeof *g.fitted);
    g.target = xcalloc(data->rows + 1, sizeof *g.target);
    g.rows = xmalloc((data->rows + 1) * sizeof *g.rows);
    g.cells = xmalloc(data->features * BINS * sizeof *g.cells);
    g.ends = xcalloc(options->trees + 1, sizeof *g.ends);
    for (size_t i = 0; i < data->rows; i++)
        g.fitted[i] = offset;
    for (unsigned f = 0; f < data->features; f++)
        find_edges(&g, f);
    bin_rows(&g);
    for (unsigned t = 0; t < options->trees; t++)
        grow_tree(&g, t);

    struct cost_trees *state = write_state(&g, offset, line, size);
    free_grower(&g);
    return state;
}
