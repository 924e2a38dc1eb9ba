/* SPDX-License-Identifier: Apache-2.0
 * Vectors and matrices between the host and the device. */
#include "capture/cublas/cublas.h"

#include "capture/core/work/stream.h"

#define TO_DEVICE 1 /* cudaMemcpyKind */
#define TO_HOST   2

/* COLUMNS pieces of ROWS elements, STRIDE elements apart. */
struct transfer {
    int rows, columns, element_bytes;
    const void *from;
    int from_stride;
    void *to;
    int to_stride;
    int direction;
    uint64_t stream;
    bool blocking;
};

static cublasStatus_t call_transfer(const struct transfer *t)
{
    uint64_t from = (uint64_t)t->from, to = (uint64_t)t->to;
    uint64_t unit = (uint64_t)t->element_bytes, rows = (uint64_t)t->rows;
    uint64_t columns = (uint64_t)t->columns;

    if (t->rows < 0 || t->columns < 0 || t->element_bytes <= 0 ||
        t->from_stride < t->rows || t->to_stride < t->rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (t->from_stride == t->rows && t->to_stride == t->rows) {
        rows *= columns;
        columns = 1;
    }
    for (uint64_t i = 0; rows && i < columns; i++) {
        int rc = memsim_copy(to + i * unit * (uint64_t)t->to_stride,
                             from + i * unit * (uint64_t)t->from_stride,
                             rows * unit, t->direction, t->stream,
                             t->blocking);
        if (rc)
            return CUBLAS_STATUS_MAPPING_ERROR;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* A vector is a matrix of one row. */
#define TRANSFER(Name, way)                                                    \
    cublasStatus_t cublas##Name##Matrix(int rows, int cols, int bytes,         \
                                        const void *a, int lda, void *b,       \
                                        int ldb)                               \
    {                                                                          \
        return call_transfer(&(const struct transfer){                         \
            rows, cols, bytes, a, lda, b, ldb, way, 0, true});                 \
    }                                                                          \
    cublasStatus_t cublas##Name##MatrixAsync(int rows, int cols, int bytes,    \
                                             const void *a, int lda, void *b,  \
                                             int ldb, cudaStream_t stream)     \
    {                                                                          \
        return call_transfer(&(const struct transfer){                         \
            rows, cols, bytes, a, lda, b, ldb, way, (uint64_t)stream, false}); \
    }                                                                          \
    cublasStatus_t cublas##Name##Vector(int n, int bytes, const void *x,       \
                                        int incx, void *y, int incy)           \
    {                                                                          \
        return call_transfer(&(const struct transfer){1, n, bytes, x, incx, y, \
                                                      incy, way, 0, true});    \
    }                                                                          \
    cublasStatus_t cublas##Name##VectorAsync(int n, int bytes, const void *x,  \
                                             int incx, void *y, int incy,      \
                                             cudaStream_t stream)              \
    {                                                                          \
        return call_transfer(&(const struct transfer){                         \
            1, n, bytes, x, incx, y, incy, way, (uint64_t)stream, false});     \
    }

TRANSFER(Set, TO_DEVICE)
TRANSFER(Get, TO_HOST)
