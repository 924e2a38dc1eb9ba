/* SPDX-License-Identifier: Apache-2.0
 * Operations without descriptors: matrices of blocks, sums, sorting. */
#include "capture/cusparse/cusparse_fake.h"

#include "capture/core/work/library_call.h"
#include "capture/core/run/record.h"
#include "capture/core/memory/values.h"

/* As in compute.c. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define API     cusparseStatus_t
#define HANDLE  cusparseHandle_t handle
#define BLOCKS  HANDLE, cusparseDirection_t direction, cusparseOperation_t op
#define SHAPE(...) (&(const struct sparse_shape){__VA_ARGS__})
#define SIZE(op, ...)                                                          \
    {                                                                          \
        return sparse_size(handle, SPARSE_##op, SHAPE(__VA_ARGS__), bytes);    \
    }
#define RUN(name, ...)                                                         \
    {                                                                          \
        return sparse_run(handle, NAME_OF(#name), SHAPE(__VA_ARGS__));         \
    }

/* The same in an int, as older functions have it. */
static API size_int(HANDLE, const struct sparse_shape *shape, int *bytes)
{
    size_t wanted = 0;
    API status = sparse_size(handle, SPARSE_SOLVE, shape, &wanted);

    if (status || !bytes || wanted > INT32_MAX)
        return status ? status : CUSPARSE_STATUS_INVALID_VALUE;
    *bytes = (int)wanted;
    return status;
}

#define MATRIX(T)                                                              \
    const cusparseMatDescr_t a, T *values, const int *offsets,                 \
        const int *indices, int block
#define TRIANGLE(type_)                                                        \
    .type = type_, .rows = mb, .columns = mb, .count = nnzb, .block = block

#define BSR(P, T, type_)                                                       \
    API cusparse##P##bsrmv(BLOCKS, int mb, int nb, int nnzb, const T *alpha,   \
                           MATRIX(const T), const T *x, const T *beta, T *y)   \
    RUN(cusparse##P##bsrmv, .type = type_, .rows = mb, .columns = nb,          \
        .count = nnzb, .width = 1, .block = block)                             \
    API cusparse##P##bsrmm(BLOCKS, cusparseOperation_t op_b, int mb, int n,    \
                           int kb, int nnzb, const T *alpha, MATRIX(const T),  \
                           const T *b, int ldb, const T *beta, T *c, int ldc)  \
    RUN(cusparse##P##bsrmm, .type = type_, .rows = mb, .columns = kb,          \
        .count = nnzb, .width = n, .block = block)                             \
    API cusparse##P##bsrsv2_bufferSize(BLOCKS, int mb, int nnzb, MATRIX(T),    \
                                       bsrsv2Info_t info, int *bytes)          \
    {                                                                          \
        return size_int(handle, SHAPE(TRIANGLE(type_)), bytes);                \
    }                                                                          \
    API cusparse##P##bsrsv2_analysis(                                          \
        BLOCKS, int mb, int nnzb, MATRIX(const T), bsrsv2Info_t info,          \
        cusparseSolvePolicy_t policy, void *buffer)                            \
    RUN(cusparse##P##bsrsv2_analysis, TRIANGLE(type_), .width = 1)             \
    API cusparse##P##bsrsv2_solve(BLOCKS, int mb, int nnzb, const T *alpha,    \
                                  MATRIX(const T), bsrsv2Info_t info,          \
                                  const T *f, T *x,                            \
                                  cusparseSolvePolicy_t policy, void *buffer)  \
    RUN(cusparse##P##bsrsv2_solve, TRIANGLE(type_), .width = 1)                \
    API cusparse##P##bsrsm2_bufferSize(BLOCKS, cusparseOperation_t op_x,       \
                                       int mb, int n, int nnzb, MATRIX(T),     \
                                       bsrsm2Info_t info, int *bytes)          \
    {                                                                          \
        return size_int(handle, SHAPE(TRIANGLE(type_)), bytes);                \
    }                                                                          \
    API cusparse##P##bsrsm2_analysis(                                          \
        BLOCKS, cusparseOperation_t op_x, int mb, int n, int nnzb,             \
        MATRIX(const T), bsrsm2Info_t info, cusparseSolvePolicy_t policy,      \
        void *buffer)                                                          \
    RUN(cusparse##P##bsrsm2_analysis, TRIANGLE(type_), .width = n)             \
    API cusparse##P##bsrsm2_solve(                                             \
        BLOCKS, cusparseOperation_t op_x, int mb, int n, int nnzb,             \
        const T *alpha, MATRIX(const T), bsrsm2Info_t info, const T *b,        \
        int ldb, T *x, int ldx, cusparseSolvePolicy_t policy, void *buffer)    \
    RUN(cusparse##P##bsrsm2_solve, TRIANGLE(type_), .width = n)

/* One operand of a sum, and what the sum is recorded as. */
#define OPERAND(T, name)                                                       \
    const cusparseMatDescr_t name, int nnz_##name, const T *values_##name,     \
        const int *offsets_##name, const int *indices_##name
#define SUM(type_)                                                             \
    .type = type_, .rows = m, .columns = n, .count = nnz_a + nnz_b

#define ADD(P, T, type_)                                                       \
    API cusparse##P##csrgeam2_bufferSizeExt(                                   \
        HANDLE, int m, int n, const T *alpha, OPERAND(T, a), const T *beta,    \
        OPERAND(T, b), const cusparseMatDescr_t c, const T *values,            \
        const int *offsets, const int *indices, size_t *bytes)                 \
    SIZE(ADD, SUM(type_))                                                      \
    API cusparse##P##csrgeam2(HANDLE, int m, int n, const T *alpha,            \
                              OPERAND(T, a), const T *beta, OPERAND(T, b),     \
                              const cusparseMatDescr_t c, T *values,           \
                              int *offsets, int *indices, void *buffer)        \
    RUN(cusparse##P##csrgeam2, SUM(type_))

#define FAMILY(P, T, type)                                                     \
    BSR(P, T, type)                                                            \
    ADD(P, T, type)

FAMILY(S, float, CUDA_R_32F)
FAMILY(D, double, CUDA_R_64F)
FAMILY(C, cuComplex, CUDA_C_32F)
FAMILY(Z, cuDoubleComplex, CUDA_C_64F)

/* -1: no pivot was zero. */
static API no_pivot(HANDLE, int *position)
{
    const int none = -1;

    if (!cusparse_get(handle))
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    memsim_values_copy((uint64_t)position, (uint64_t)&none, sizeof none);
    return CUSPARSE_STATUS_SUCCESS;
}

API cusparseXbsrsv2_zeroPivot(HANDLE, bsrsv2Info_t info, int *position)
{
    return no_pivot(handle, position);
}

API cusparseXbsrsm2_zeroPivot(HANDLE, bsrsm2Info_t info, int *position)
{
    return no_pivot(handle, position);
}

API cusparseXcsrgeam2Nnz(HANDLE, int m, int n, const cusparseMatDescr_t a,
                         int nnz_a, const int *offsets_a, const int *indices_a,
                         const cusparseMatDescr_t b, int nnz_b,
                         const int *offsets_b, const int *indices_b,
                         const cusparseMatDescr_t c, int *offsets, int *total,
                         void *buffer)
{
    uint32_t name = NAME_OF("cusparseXcsrgeam2Nnz");
    API status = sparse_run(handle, name, SHAPE(SUM(CUDA_R_32I)));
    int count;

    if (status || !total)
        return status;
    count = (int)sparse_sum_count(m, n, nnz_a, nnz_b);
    if (nnz_a && nnz_b)
        sparse_guess(handle, name, (int64_t)m * n, count);
    memsim_values_copy((uint64_t)total, (uint64_t)&count, sizeof count);
    return status;
}

#define SORTED .type = CUDA_R_32I, .rows = m, .columns = n, .count = nnz

API cusparseXcoo2csr(HANDLE, const int *rows, int nnz, int m, int *offsets,
                     cusparseIndexBase_t base)
RUN(cusparseXcoo2csr, .type = CUDA_R_32I, .rows = m, .count = nnz)
API cusparseCreateIdentityPermutation(HANDLE, int nnz, int *permutation)
RUN(cusparseCreateIdentityPermutation, .type = CUDA_R_32I, .count = nnz)
API cusparseXcoosort_bufferSizeExt(HANDLE, int m, int n, int nnz,
                                   const int *rows, const int *columns,
                                   size_t *bytes)
SIZE(SORT_COO, SORTED)
API cusparseXcoosortByRow(HANDLE, int m, int n, int nnz, int *rows,
                          int *columns, int *permutation, void *buffer)
RUN(cusparseXcoosortByRow, SORTED)
API cusparseXcoosortByColumn(HANDLE, int m, int n, int nnz, int *rows,
                             int *columns, int *permutation, void *buffer)
RUN(cusparseXcoosortByColumn, SORTED)
API cusparseXcsrsort_bufferSizeExt(HANDLE, int m, int n, int nnz,
                                   const int *offsets, const int *columns,
                                   size_t *bytes)
SIZE(SORT_CSR, SORTED)
API cusparseXcsrsort(HANDLE, int m, int n, int nnz, const cusparseMatDescr_t a,
                     const int *offsets, int *columns, int *permutation,
                     void *buffer)
RUN(cusparseXcsrsort, SORTED)

#define TRANSPOSED                                                             \
    HANDLE, int m, int n, int nnz, const void *values, const int *offsets,     \
        const int *columns, void *new_values, int *new_offsets, int *rows,     \
        cudaDataType type_, cusparseAction_t action,                           \
        cusparseIndexBase_t base, cusparseCsr2CscAlg_t alg

API cusparseCsr2cscEx2_bufferSize(TRANSPOSED, size_t *bytes)
SIZE(CONVERT, .type = type_, .rows = m, .columns = n, .count = nnz)
API cusparseCsr2cscEx2(TRANSPOSED, void *buffer)
RUN(cusparseCsr2cscEx2, .type = type_, .rows = m, .columns = n, .count = nnz)
