/* SPDX-License-Identifier: Apache-2.0
 * A GPU's fit as one flat, read-only image: no pointers, offsets in bytes from
 * its start, so that it can be mapped anywhere. Made from a
 * fit's JSON by fit_ops_load(); checked once by cost_image_check(), after which
 * no price reads beyond it.
 *
 *   struct cost_image | models[] | table[] | states of the models
 */
#ifndef MEMSIM_RUNTIME_COST_COST_IMAGE_H
#define MEMSIM_RUNTIME_COST_COST_IMAGE_H

#include <stddef.h>

#include "runtime/cost/cost.h"

#define COST_IMAGE_MAGIC   UINT64_C(0x3174736f636d656d) /* "memcost1" */
#define COST_IMAGE_VERSION 4
#define COST_EDGES         255 /* of one input; bins are 0 to COST_EDGES */
#define COST_LEAF          255 /* in place of a node's feature */

enum cost_kind { COST_LINE, COST_SEGMENTS, COST_TREES, COST_KINDS };

/* What measurements of the user's GPU say of the models' prices of a family:
 * factors of the price and of its band. FACTOR 0: nothing. */
struct cost_scale {
    double factor, low, high;
};

struct cost_image {
    uint64_t magic;
    uint32_t version, bytes; /* BYTES: of the whole image */
    char gpu[32];            /* the catalogue's name of the GPU it prices */
    uint32_t model_count, models_at;
    uint32_t table_slots, table_at; /* slots: 0 or a power of 2 */
    uint32_t kernel_count; /* of the table's entries; see cost_kernel_key */
    struct cost_scale scales[WORK_FAMILIES]; /* of work that is described */
};

/* Which work a model answers. The first one that does is asked. */
struct cost_model {
    uint32_t family;    /* enum work_family */
    uint32_t types;     /* bit 1 << type for each */
    uint32_t variants;  /* bit 1 << work_variant() for each */
    uint32_t kind;      /* enum cost_kind */
    uint32_t basis;     /* enum cost_basis */
    uint32_t at, bytes; /* of its state */
    uint32_t flags;     /* of the answers */
    double low, high;   /* the band, as factors of the price */
    double weight;      /* above 0: blended, see cost_image_blend */
};

/* A shape or a kernel that was measured. Open addressing, a free slot has key
 * 0.
 */
struct cost_entry {
    uint64_t key; /* cost_shape_key() or cost_kernel_key() */
    double ns;
};

/* COST_SEGMENTS: ln t over x = ln bytes; y1 at k1, y2 at k2, slope b1 before
 * k1 and 1 after k2. T = exp(a1 + b1 ln x), exp(a2 + b2 ln x), exp(a3 + ln x)
 * with a1 = y1 - b1 k1 and so on: continuous at both breaks. Never less than
 * exp(least): what the smallest sizes measured take. */
struct cost_segments {
    double k1, k2, y1, y2, b1, least;
};

/* COST_TREES: ln(t / roofline) = OFFSET + SCALE x sum of one leaf per tree.
 * After it: edge_counts[feature_count] (uint32_t), edges (float, ascending,
 * feature after feature), tree ends (uint32_t, in nodes), nodes. */
struct cost_trees {
    struct cost_roofline line;
    double offset, scale;
    uint32_t feature_count, edge_count, tree_count, node_count;
};

/* An input up to and including edge CUT goes to CHILD, a larger one to
 * CHILD + 1, both counted from the tree's first node. A leaf's value is CHILD,
 * signed. */
struct cost_node {
    uint8_t feature;
    uint8_t cut;
    uint16_t child;
};

/* Checks all of IMAGE, which has SIZE bytes. Returns NULL, or what is wrong. */
const char *cost_image_check(const struct cost_image *image, size_t size);

/* The evaluator of KIND, NULL where there is none. */
const struct cost_ops *cost_kind_ops(enum cost_kind kind);

/* The band of two errors that do not depend on each other, whose bands are the
 * factors ONE and OTHER. */
double cost_bands_join(double one, double other);

/* The model that answers for WORK, or NULL. */
const struct cost_model *cost_image_model(const struct cost_image *image,
                                          const struct work *work);

/* The next model after M that is blended with it for WORK: the price is the
 * geometric mean of theirs by their weights. NULL: there is none. */
const struct cost_model *cost_image_blend(const struct cost_image *image,
                                          const struct cost_model *m,
                                          const struct work *work);

/* Looks WORK's shape up. Returns 0 and its time, or -1. */
int cost_image_find(const struct cost_image *image, const struct work *work,
                    double *ns);

/* Looks KEY up, of a shape or of a kernel. Returns 0 and its time, or -1. */
int cost_image_find_key(const struct cost_image *image, uint64_t key,
                        double *ns);

/* The key of a launch of the kernel whose name has the hash NAME (hash_text);
 * LAUNCH: its grid and block. Never 0. */
uint64_t cost_kernel_key(uint64_t name, const uint32_t grid[3],
                         const uint32_t block[3]);

/* The key of the same kernel whatever its grid; its entry has, in place of a
 * time, measured over predicted time. */
uint64_t cost_name_key(uint64_t name);

/* The evaluators; STATE was checked. */
double cost_segments_ns(const struct cost_segments *segments, double bytes);
double cost_trees_ns(const struct cost_trees *trees, const struct cost_gpu *gpu,
                     const struct work *work, uint32_t source);

/* The bin of X among COUNT edges (255 at most), which ascend: how many are
 * below it. Training and evaluation share it. */
uint8_t cost_bin(const float *edges, uint32_t count, float x);

/* The bins of the inputs X. */
void cost_trees_bin(const struct cost_trees *trees, const float *x,
                    uint8_t *bins);

/* The sum of the leaves for BINS. */
double cost_trees_sum(const struct cost_trees *trees, const uint8_t *bins);

/* Checks a state of SIZE bytes; NULL, or what is wrong. */
const char *cost_trees_check(const struct cost_trees *trees, size_t size);
const char *cost_segments_check(const struct cost_segments *s, size_t size);
const char *cost_roofline_check(const struct cost_roofline *line, size_t size);

#endif
