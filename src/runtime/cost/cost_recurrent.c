/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost_recurrent.h"

#include <math.h>

/* How it is made up is known, cuDNN's kernels are not: a roofline's band. */
#define MADE_UP_BAND 1.5

#define MAX_NS 86400e9 /* a day: lengths may be anything */

struct sum {
    double ns, low, high;
    enum cost_basis basis;
};

static void sum_add(struct sum *sum, const struct sum *part, double times)
{
    sum->ns += times * part->ns;
    sum->low += times * part->low;
    sum->high += times * part->high;
    if (sum->basis < part->basis)
        sum->basis = part->basis;
}

/* GPU and its prices, and the network. */
struct network {
    const struct cost_image *image;
    const struct cost_gpu *gpu;
    const struct work_recurrent *shape;
    enum work_type type;
};

static void add_part(const struct network *n, const struct work *part,
                     double times, struct sum *sum)
{
    struct cost_answer a;

    cost_price(n->image, n->gpu, part, &a);
    sum_add(sum,
            &(struct sum){(double)a.ns + COST_GAP_NS,
                          (double)a.low_ns + COST_GAP_NS,
                          (double)a.high_ns + COST_GAP_NS, a.basis},
            times);
}

/* out[M][N] = A[M][K] B[K][N]; weights lie as PyTorch's, gates before inputs.
 */
static void add_product(const struct network *n, uint64_t m, uint64_t columns,
                        uint64_t k, double times, struct sum *sum)
{
    double rows = (double)m, wide = (double)columns, deep = (double)k;
    double bytes = n->shape->type_bytes;
    struct work product = {
        .family = WORK_GEMM,
        .type = n->type,
        .source = WORK_EXACT,
        .element_bytes = n->shape->type_bytes,
        .flops = 2 * rows * wide * deep,
        .read_bytes = bytes * (rows * deep + deep * wide),
        .written_bytes = bytes * rows * wide,
        .elements = m * columns,
        .gemm = {.m = m,
                 .n = columns,
                 .k = k,
                 .batch = 1,
                 .transpose_a = n->shape->pass == WORK_PASS_WEIGHTS,
                 .transpose_b = n->shape->pass == WORK_PASS_FORWARD,
                 .out_bytes = n->shape->type_bytes},
    };

    add_part(n, &product, times, sum);
}

/* The gates of ROWS cells from both products and the state, or their
 * gradients: as much is read as written. */
static void add_gates(const struct network *n, uint64_t rows, struct sum *sum)
{
    const struct work_recurrent *s = n->shape;
    double cells = (double)rows * (double)s->hidden;
    struct work gates = {
        .family = WORK_ELEMENTWISE,
        .type = s->type_bytes == 8 ? WORK_FP64 : WORK_FP32,
        .source = WORK_EXACT,
        .element_bytes = s->type_bytes,
        .read_bytes = s->type_bytes * cells * (2 * s->gates + 1.0),
        .written_bytes = s->type_bytes * cells * (s->gates + 2.0),
        .elements = rows * s->hidden,
    };

    add_part(n, &gates, 1, sum);
}

/* A step of one layer and direction. The host launches its kernels one by one,
 * so that it takes at least as long as that. */
static struct sum step_of(const struct network *n)
{
    const struct work_recurrent *s = n->shape;
    uint64_t rows = (s->tokens + s->steps - 1) / s->steps;
    uint64_t gates = s->gates * s->hidden;
    const double launches = 2 * COST_LAUNCH_NS;
    struct sum sum = {0};

    if (s->pass == WORK_PASS_FORWARD)
        add_product(n, rows, gates, s->hidden, 1, &sum);
    else
        add_product(n, rows, s->hidden, gates, 1, &sum);
    add_gates(n, rows, &sum);
    sum.ns = fmax(sum.ns, launches);
    sum.low = fmax(sum.low, launches);
    sum.high = fmax(sum.high, launches);
    return sum;
}

/* What needs no step before it: products of WIDTH inputs of all steps. */
static void add_inputs(const struct network *n, uint64_t width, double times,
                       struct sum *sum)
{
    const struct work_recurrent *s = n->shape;
    uint64_t gates = s->gates * s->hidden;

    if (s->pass == WORK_PASS_FORWARD)
        add_product(n, s->tokens, gates, width, times, sum);
    else if (s->pass == WORK_PASS_DATA)
        add_product(n, s->tokens, width, gates, times, sum);
    else
        add_product(n, gates, width, s->tokens, times, sum);
}

/* tf32 needs tensor cores that have it. */
static enum work_type type_on(const struct cost_gpu *gpu,
                              const struct work *work)
{
    bool none = work->type == WORK_TF32 && !(gpu->tflops[WORK_TF32] > 0);

    return none ? WORK_FP32 : work->type;
}

static double widen_factor(double factor)
{
    return cost_bands_join(fmax(factor, 1), MADE_UP_BAND);
}

void cost_recurrent_price(const struct cost_image *image,
                          const struct cost_gpu *gpu, const struct work *work,
                          struct cost_answer *answer)
{
    const struct work_recurrent *s = &work->recurrent;
    const struct network n = {image, gpu, s, type_on(gpu, work)};
    double directions = s->directions, layers = (double)s->layers;
    struct sum sum = {.basis = COST_BORROWED};

    add_inputs(&n, s->input, directions, &sum);
    if (s->layers > 1)
        add_inputs(&n, s->hidden * s->directions, directions * (layers - 1),
                   &sum);
    if (s->pass == WORK_PASS_WEIGHTS) { /* of the state's weights */
        add_inputs(&n, s->hidden, directions * layers, &sum);
    } else {
        struct sum step = step_of(&n);
        sum_add(&sum, &step, directions * layers * (double)s->steps);
    }
    double ns = fmin(sum.ns, MAX_NS);
    *answer = (struct cost_answer){
        .ns = (uint64_t)ns,
        .low_ns = (uint64_t)(ns / widen_factor(sum.ns / sum.low)),
        .high_ns = (uint64_t)fmin(ns * widen_factor(sum.high / sum.ns), MAX_NS),
        .basis = sum.basis,
    };
}
