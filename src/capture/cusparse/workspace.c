/* SPDX-License-Identifier: Apache-2.0
 * What buffers cuSPARSE asks for, and how many non-zeros come out. NVIDIA gives
 * no formula: each row is what the method cannot do without, and says why. One
 * measured on a GPU replaces its row. */
#include "capture/cusparse/cusparse_fake.h"

#include "capture/core/work/library_call.h"
#include "capture/core/base/datatype.h"
#include "capture/core/diagnose/assumption.h"
#include "capture/core/run/record.h"

/* Bytes for each row and each non-zero (of a matrix of blocks: each block). */
static const struct rule {
    uint32_t row_bytes, count_bytes;
} rules[SPARSE_OPS] = {
    /* a row, or some of its non-zeros, to a group of threads: nothing kept */
    [SPARSE_MV] = {0, 0},
    [SPARSE_MM] = {0, 0},
    [SPARSE_SDDMM] = {0, 0},
    /* the analysis keeps rows by level, and where each dependency stands */
    [SPARSE_SOLVE] = {4, 4},
    /* products to expect of each row; then a column and a value of each: see
     * sparse_buffer */
    [SPARSE_GEMM_FIRST] = {8, 0},
    [SPARSE_GEMM_SECOND] = {8, 4},
    /* non-zeros of each row */
    [SPARSE_ADD] = {4, 0},
    /* radix sort of two 32-bit keys, or of one, that carries a permutation:
     * one more copy of each array */
    [SPARSE_SORT_COO] = {0, 12},
    [SPARSE_SORT_CSR] = {0, 8},
    /* the permutation */
    [SPARSE_CONVERT] = {4, 4},
};

static uint64_t sparse_buffer(enum sparse_op op, const struct sparse_shape *s)
{
    const struct rule *r = &rules[op];
    uint64_t batch = s->batch > 1 ? (uint64_t)s->batch : 1;
    uint64_t one = r->count_bytes;

    if (op == SPARSE_GEMM_SECOND)
        one += datatype_bytes(s->type);
    return batch *
           (r->row_bytes * (uint64_t)s->rows + one * (uint64_t)s->count);
}

static int shape_is_bad(const struct sparse_shape *s)
{
    return s->rows < 0 || s->columns < 0 || s->count < 0 || s->width < 0 ||
           s->block < 0 || s->batch < 0;
}

cusparseStatus_t sparse_size(cusparseHandle_t handle, enum sparse_op op,
                             const struct sparse_shape *shape, size_t *bytes)
{
    if (!cusparse_get(handle))
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    if (shape_is_bad(shape) || !bytes)
        return CUSPARSE_STATUS_INVALID_VALUE;
    *bytes = sparse_buffer(op, shape);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t sparse_run(cusparseHandle_t handle, uint32_t name,
                            const struct sparse_shape *s)
{
    const struct cusparse *c = cusparse_get(handle);

    if (!c)
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    if (shape_is_bad(s))
        return CUSPARSE_STATUS_INVALID_VALUE;
    const struct call call = {
        .name = name,
        .stream = c->stream,
        .values = {(uint64_t)s->rows, (uint64_t)s->columns, (uint64_t)s->count,
                   (uint64_t)s->width, (uint64_t)s->block, (uint64_t)s->type},
    };
    return memsim_call(&call) ? CUSPARSE_STATUS_EXECUTION_FAILED
                              : CUSPARSE_STATUS_SUCCESS;
}

void sparse_guess(cusparseHandle_t handle, uint32_t name, int64_t places,
                  int64_t chosen)
{
    const struct cusparse *c = cusparse_get(handle);

    const struct guess guess = {.name = name,
                                .device = (uint64_t)c->device,
                                .stream = c->stream,
                                .elements = (uint64_t)places,
                                .chosen = (uint64_t)chosen};
    memsim_assumption(&guess,
                 "the non-zeros of a sparse product or sum are not known: "
                 "memsim counts as many as operands with theirs at random "
                 "places would give");
}

/* The smaller of COUNT and all places, at least 0. */
static int64_t count_within(double count, int64_t rows, int64_t columns)
{
    double places = (double)rows * (double)columns;

    return (int64_t)(count < places ? count : places);
}

/* A place of C is empty when all K pairs that meet there are: (1 - pq)^K with
 * the densities p and q, at most one for each of the products. */
int64_t sparse_product_count(const struct sparse *a, const struct sparse *b)
{
    double inner = (double)a->columns;
    double places = (double)a->rows * (double)b->columns;
    double density_a = (double)a->count / ((double)a->rows * inner);
    double density_b = (double)b->count / (inner * (double)b->columns);
    double empty = 1, base = 1 - density_a * density_b;

    if (!a->count || !b->count || !(places > 0))
        return 0;
    for (uint64_t k = (uint64_t)a->columns; k; k >>= 1, base *= base)
        if (k & 1)
            empty *= base;
    return count_within(places * (1 - empty) + 0.5, a->rows, b->columns);
}

int64_t sparse_sum_count(int64_t rows, int64_t columns, int64_t count_a,
                         int64_t count_b)
{
    double places = (double)rows * (double)columns;
    double both = (double)count_a * (double)count_b;

    if (!count_a || !count_b || !(places > 0))
        return count_a + count_b;
    return count_within((double)count_a + (double)count_b - both / places + 0.5,
                        rows, columns);
}
