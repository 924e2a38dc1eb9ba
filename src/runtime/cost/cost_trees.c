/* SPDX-License-Identifier: Apache-2.0
 * An ensemble of trees over a roofline. Inputs are first put into bins, then
 * each tree compares bytes. */
#include "common/base/bisect.h"
#include "runtime/cost/cost_features.h"
#include "runtime/cost/cost_image.h"

#include <math.h>

struct parts {
    const uint32_t *edge_counts;
    const float *edges;
    const uint32_t *ends;
    const struct cost_node *nodes;
};

static struct parts parts_of(const struct cost_trees *t)
{
    struct parts p;

    p.edge_counts = (const uint32_t *)(t + 1);
    p.edges = (const float *)(p.edge_counts + t->feature_count);
    p.ends = (const uint32_t *)(p.edges + t->edge_count);
    p.nodes = (const struct cost_node *)(p.ends + t->tree_count);
    return p;
}

uint8_t cost_bin(const float *edges, uint32_t count, float x)
{
    return (uint8_t)BISECT(i, count, x > edges[i]);
}

void cost_trees_bin(const struct cost_trees *trees, const float *x,
                    uint8_t *bins)
{
    struct parts p = parts_of(trees);

    for (uint32_t f = 0; f < trees->feature_count; f++) {
        bins[f] = cost_bin(p.edges, p.edge_counts[f], x[f]);
        p.edges += p.edge_counts[f];
    }
}

double cost_trees_sum(const struct cost_trees *trees, const uint8_t *bins)
{
    struct parts p = parts_of(trees);
    int64_t sum = 0;

    for (uint32_t t = 0, first = 0; t < trees->tree_count; t++) {
        const struct cost_node *tree = p.nodes + first, *node = tree;

        while (node->feature != COST_LEAF)
            node = tree + node->child + (bins[node->feature] > node->cut);
        sum += (int16_t)node->child;
        first = p.ends[t];
    }
    return (double)sum;
}

double cost_trees_ns(const struct cost_trees *trees, const struct cost_gpu *gpu,
                     const struct work *work, uint32_t source)
{
    float x[COST_FEATURES];
    uint8_t bins[COST_FEATURES];

    if (cost_features(gpu, work, source, x) != trees->feature_count)
        return 0;
    cost_trees_bin(trees, x, bins);
    return cost_roofline_ns(&trees->line, gpu, work) *
           exp(trees->offset + trees->scale * cost_trees_sum(trees, bins));
}

static const char *check_edges(const struct cost_trees *t,
                               const struct parts *p)
{
    const float *edges = p->edges;
    uint64_t sum = 0;

    for (uint32_t f = 0; f < t->feature_count; f++) {
        if (p->edge_counts[f] > COST_EDGES)
            return "an input has more than 255 edges";
        sum += p->edge_counts[f];
    }
    if (sum != t->edge_count)
        return "the inputs' edges do not add up";
    for (uint32_t f = 0; f < t->feature_count; f++) {
        for (uint32_t i = 0; i < p->edge_counts[f]; i++)
            if (!isfinite(edges[i]) || (i && !(edges[i] > edges[i - 1])))
                return "an input's edges do not ascend";
        edges += p->edge_counts[f];
    }
    return NULL;
}

/* Children lie behind their parents, so that every walk ends. */
static const char *check_tree(const struct cost_node *nodes, uint32_t count,
                              uint32_t features)
{
    if (!count || count > UINT16_MAX)
        return "a tree is empty or has more than 65535 nodes";
    for (uint32_t i = 0; i < count; i++) {
        if (nodes[i].feature == COST_LEAF)
            continue;
        if (nodes[i].feature >= features)
            return "a node asks for an input that the family lacks";
        if (nodes[i].child <= i || nodes[i].child + 1u >= count)
            return "a node's children are not behind it";
    }
    return NULL;
}

static const char *check_nodes(const struct cost_trees *t,
                               const struct parts *p)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < t->tree_count; i++) {
        if (p->ends[i] <= first || p->ends[i] > t->node_count)
            return "the trees do not add up";
        const char *wrong =
            check_tree(p->nodes + first, p->ends[i] - first, t->feature_count);
        if (wrong)
            return wrong;
        first = p->ends[i];
    }
    return first == t->node_count ? NULL : "the trees do not add up";
}

const char *cost_trees_check(const struct cost_trees *t, size_t size)
{
    if (size < sizeof *t)
        return "the trees are cut short";
    if (t->feature_count > COST_FEATURES)
        return "the trees have more inputs than memsim knows";
    uint64_t need =
        sizeof *t + 4 * ((uint64_t)t->feature_count + t->edge_count +
                         t->tree_count + t->node_count);
    if (need > size)
        return "the trees are cut short";
    if (!isfinite(t->offset) || !isfinite(t->scale))
        return "the trees' scale is not a number";

    struct parts p = parts_of(t);
    const char *wrong = cost_roofline_check(&t->line, sizeof t->line);
    if (!wrong)
        wrong = check_edges(t, &p);
    return wrong ? wrong : check_nodes(t, &p);
}
