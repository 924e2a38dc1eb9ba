/* SPDX-License-Identifier: Apache-2.0
 * The generic operations, on descriptors. */
#include "capture/cusparse/cusparse_fake.h"

#include "capture/core/base/datatype.h"
#include "capture/core/work/library_call.h"
#include "capture/core/run/record.h"

/* Scalars, algorithms and values are not looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define API    cusparseStatus_t
#define HANDLE cusparseHandle_t handle
#define OP_A   cusparseOperation_t op_a
#define OP_AB  OP_A, cusparseOperation_t op_b

/* Recorded of an operation: its sparse matrix, and the dense one's columns. */
static struct sparse_shape shape_of(const struct sparse *sparse, int64_t width)
{
    int64_t block = sparse->block_rows;

    return (struct sparse_shape){
        .type = sparse->type,
        .rows = sparse->rows,
        .columns = sparse->columns,
        .count = sparse->count,
        .width = width,
        .block = block,
        .batch = sparse->batch,
    };
}

/* Columns of op(DENSE). */
static int64_t width_of(const struct sparse *dense, cusparseOperation_t op)
{
    return op == CUSPARSE_OPERATION_NON_TRANSPOSE ? dense->columns
                                                  : dense->rows;
}

static API size_of(HANDLE, enum sparse_op op, const void *sparse,
                   const void *dense, cusparseOperation_t op_dense,
                   size_t *bytes)
{
    const struct sparse *s = sparse_get(sparse), *d = sparse_get(dense);

    if (!s || !d)
        return CUSPARSE_STATUS_INVALID_VALUE;
    const struct sparse_shape shape = shape_of(s, width_of(d, op_dense));
    return sparse_size(handle, op, &shape, bytes);
}

static void matrix_forget(HANDLE, const void *address, uint64_t bytes,
                          uint64_t rows, uint64_t step)
{
    memsim_call_writes(cusparse_get(handle)->stream, (uint64_t)address, bytes,
                       rows, step);
}

/* What is written to R is not known. */
static void result_forget(HANDLE, const struct sparse *r)
{
    uint64_t bytes = datatype_bytes(r->type), count = (uint64_t)r->count;
    bool by_rows = r->order == CUSPARSE_ORDER_ROW;
    uint64_t width = (uint64_t)(by_rows ? r->columns : r->rows);
    uint64_t rows = (uint64_t)(by_rows ? r->rows : r->columns);

    if (r->format) {
        matrix_forget(handle, r->values, count * bytes, 1, 0);
        return;
    }
    for (int i = 0; i < (r->batch > 1 ? r->batch : 1); i++)
        matrix_forget(handle,
                      (const char *)r->values +
                          (uint64_t)i * (uint64_t)r->batch_stride * bytes,
                      width * bytes, rows, (uint64_t)r->leading * bytes);
}

/* RESULT: what is written; NULL: nothing that a program reads. */
static API product_run(HANDLE, uint32_t name, const void *sparse,
                       const void *dense, cusparseOperation_t op_dense,
                       const void *result)
{
    const struct sparse *s = sparse_get(sparse), *d = sparse_get(dense);

    if (!s || !d)
        return CUSPARSE_STATUS_INVALID_VALUE;
    const struct sparse_shape shape = shape_of(s, width_of(d, op_dense));
    API status = sparse_run(handle, name, &shape);
    if (!status && result && sparse_get(result))
        result_forget(handle, sparse_get(result));
    return status;
}

#define SIZE(op, sparse, dense, op_dense)                                      \
    {                                                                          \
        return size_of(handle, SPARSE_##op, sparse, dense, op_dense, bytes);   \
    }
#define RUN(name, sparse, dense, op_dense, result)                             \
    {                                                                          \
        return product_run(handle, NAME_OF(#name), sparse, dense, op_dense,    \
                           result);                                            \
    }
#define AS_IS CUSPARSE_OPERATION_NON_TRANSPOSE

#define MV                                                                     \
    HANDLE, OP_A, const void *alpha, cusparseConstSpMatDescr_t a,              \
        cusparseConstDnVecDescr_t x, const void *beta,                         \
        cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t alg
#define MM                                                                     \
    HANDLE, OP_AB, const void *alpha, cusparseConstSpMatDescr_t a,             \
        cusparseConstDnMatDescr_t b, const void *beta,                         \
        cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpMMAlg_t alg
#define SDDMM                                                                  \
    HANDLE, OP_AB, const void *alpha, cusparseConstDnMatDescr_t a,             \
        cusparseConstDnMatDescr_t b, const void *beta,                         \
        cusparseSpMatDescr_t c, cudaDataType compute, cusparseSDDMMAlg_t alg
#define SV                                                                     \
    HANDLE, OP_A, const void *alpha, cusparseConstSpMatDescr_t a,              \
        cusparseConstDnVecDescr_t x, cusparseDnVecDescr_t y,                   \
        cudaDataType compute, cusparseSpSVAlg_t alg,                           \
        cusparseSpSVDescr_t analysis
#define SM                                                                     \
    HANDLE, OP_AB, const void *alpha, cusparseConstSpMatDescr_t a,             \
        cusparseConstDnMatDescr_t b, cusparseDnMatDescr_t c,                   \
        cudaDataType compute, cusparseSpSMAlg_t alg,                           \
        cusparseSpSMDescr_t analysis

API cusparseSpMV_bufferSize(MV, size_t *bytes) SIZE(MV, a, x, AS_IS)
API cusparseSpMV_preprocess(MV, void *buffer)
RUN(cusparseSpMV_preprocess, a, x, AS_IS, NULL)
API cusparseSpMV(MV, void *buffer) RUN(cusparseSpMV, a, x, AS_IS, y)

API cusparseSpMM_bufferSize(MM, size_t *bytes) SIZE(MM, a, b, op_b)
API cusparseSpMM_preprocess(MM, void *buffer)
RUN(cusparseSpMM_preprocess, a, b, op_b, NULL)
API cusparseSpMM(MM, void *buffer) RUN(cusparseSpMM, a, b, op_b, c)

/* The width of a sampled product is what it sums over: columns of op(A). */
API cusparseSDDMM_bufferSize(SDDMM, size_t *bytes) SIZE(SDDMM, c, a, op_a)
API cusparseSDDMM_preprocess(SDDMM, void *buffer)
RUN(cusparseSDDMM_preprocess, c, a, op_a, NULL)
API cusparseSDDMM(SDDMM, void *buffer) RUN(cusparseSDDMM, c, a, op_a, c)

API cusparseSpSV_bufferSize(SV, size_t *bytes) SIZE(SOLVE, a, x, AS_IS)
API cusparseSpSV_analysis(SV, void *buffer)
RUN(cusparseSpSV_analysis, a, x, AS_IS, NULL)
API cusparseSpSV_solve(SV) RUN(cusparseSpSV_solve, a, x, AS_IS, y)

API cusparseSpSM_bufferSize(SM, size_t *bytes) SIZE(SOLVE, a, b, op_b)
API cusparseSpSM_analysis(SM, void *buffer)
RUN(cusparseSpSM_analysis, a, b, op_b, NULL)
API cusparseSpSM_solve(SM) RUN(cusparseSpSM_solve, a, b, op_b, c)

API cusparseSparseToDense_bufferSize(HANDLE, cusparseConstSpMatDescr_t a,
                                     cusparseDnMatDescr_t b,
                                     cusparseSparseToDenseAlg_t alg,
                                     size_t *bytes)
SIZE(MM, a, b, AS_IS)
API cusparseSparseToDense(HANDLE, cusparseConstSpMatDescr_t a,
                          cusparseDnMatDescr_t b,
                          cusparseSparseToDenseAlg_t alg, void *buffer)
RUN(cusparseSparseToDense, a, b, AS_IS, b)

/* A product of sparse matrices: each of the two phases is called twice, first
 * without a buffer for its size. */
struct product {
    HANDLE;
    const void *a, *b, *c;
    size_t *bytes;
    void *buffer;
};

/* Products of single elements, where the non-zeros lie at random. */
static int64_t products_of(const struct sparse *a, const struct sparse *b)
{
    return b->rows ? (int64_t)((double)a->count * (double)b->count /
                               (double)b->rows)
                   : 0;
}

static API product_phase(uint32_t name, enum sparse_op op,
                         const struct product *p)
{
    const struct sparse *a = sparse_get(p->a), *b = sparse_get(p->b);
    struct sparse *c = sparse_get(p->c);

    if (!a || !b || !c)
        return CUSPARSE_STATUS_INVALID_VALUE;
    struct sparse_shape shape = shape_of(a, b->columns);
    if (!p->buffer) {
        shape.count = products_of(a, b);
        return sparse_size(p->handle, op, &shape, p->bytes);
    }
    API status = sparse_run(p->handle, name, &shape);
    if (!status && op == SPARSE_GEMM_SECOND) {
        c->count = sparse_product_count(a, b);
        sparse_guess(p->handle, name, a->rows * b->columns, c->count);
    }
    return status;
}

#define SPGEMM                                                                 \
    HANDLE, OP_AB, const void *alpha, cusparseConstSpMatDescr_t a,             \
        cusparseConstSpMatDescr_t b, const void *beta,                         \
        cusparseSpMatDescr_t c, cudaDataType compute,                          \
        cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t state

API cusparseSpGEMM_workEstimation(SPGEMM, size_t *bytes, void *buffer)
{
    return product_phase(NAME_OF("cusparseSpGEMM_workEstimation"),
                         SPARSE_GEMM_FIRST,
                         &(const struct product){handle, a, b, c, bytes,
                                                 buffer});
}

API cusparseSpGEMM_compute(SPGEMM, size_t *bytes, void *buffer)
{
    return product_phase(NAME_OF("cusparseSpGEMM_compute"), SPARSE_GEMM_SECOND,
                         &(const struct product){handle, a, b, c, bytes,
                                                 buffer});
}

API cusparseSpGEMM_copy(SPGEMM)
RUN(cusparseSpGEMM_copy, a, b, AS_IS, c)
