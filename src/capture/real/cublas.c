/* SPDX-License-Identifier: Apache-2.0
 * Taps of the matrix products of cuBLAS and cuBLASLt: records with shapes, as a
 * simulated run has them. Their kernels are parts of the calls. */
#include <cublasLt.h>
#include <cublas_v2.h>

#include "capture/core/run/record.h"
#include "capture/real/tap.h"

static uint64_t stream_of(cublasHandle_t handle)
{
    cudaStream_t stream = NULL;

    REAL_FUNCTION(cublasGetStream)(handle, &stream);
    return (uint64_t)stream;
}

/* What the handle says of G. Whether beta is 0 only the device knows where it
 * lies there. */
static void product_tell(const struct real_call *call, cublasHandle_t handle,
                         uint32_t name, struct gemm *g)
{
    cublasPointerMode_t place = CUBLAS_POINTER_MODE_DEVICE;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;

    REAL_FUNCTION(cublasGetMathMode)(handle, &math);
    REAL_FUNCTION(cublasGetPointerMode)(handle, &place);
    g->stream = stream_of(handle);
    g->math_mode = (uint32_t)math;
    g->type_d = g->type_c;
    g->ldd = g->ldc;
    if (place != CUBLAS_POINTER_MODE_HOST)
        g->beta = NULL;
    tap_product(call, name, g);
}

#define PRODUCT(name, text, arguments)                                         \
    REAL_WORK(name, arguments, NAME_OF(text), stream_of(handle),               \
              product_tell(&call, handle, NAME_OF(text), &g))

#include "capture/cublas/products.inc"

/* --- cuBLASLt ------------------------------------------------------------- */

#define LAYOUT(layout, attribute, value)                                       \
    REAL_FUNCTION(cublasLtMatrixLayoutGetAttribute)                            \
    (layout, CUBLASLT_MATRIX_LAYOUT_##attribute, &(value), sizeof(value),      \
     &written)
#define PROBLEM(attribute, value)                                              \
    REAL_FUNCTION(cublasLtMatmulDescGetAttribute)                              \
    (problem, CUBLASLT_MATMUL_DESC_##attribute, &(value), sizeof(value),       \
     &written)

struct matrix {
    int32_t type, batch;
    uint64_t rows, columns;
    int64_t leading, stride;
};

static struct matrix matrix_of(cublasLtMatrixLayout_t layout)
{
    struct matrix m = {.batch = 1};
    size_t written;

    LAYOUT(layout, TYPE, m.type);
    LAYOUT(layout, BATCH_COUNT, m.batch);
    LAYOUT(layout, ROWS, m.rows);
    LAYOUT(layout, COLS, m.columns);
    LAYOUT(layout, LD, m.leading);
    LAYOUT(layout, STRIDED_BATCH_OFFSET, m.stride);
    return m;
}

static void problem_tell(cublasLtMatmulDesc_t problem, struct gemm *g)
{
    int32_t compute = 0, scale = 0, place = 0, a = 0, b = 0;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    size_t written;

    PROBLEM(COMPUTE_TYPE, compute);
    PROBLEM(SCALE_TYPE, scale);
    PROBLEM(POINTER_MODE, place);
    PROBLEM(TRANSA, a);
    PROBLEM(TRANSB, b);
    PROBLEM(EPILOGUE, epilogue);
    g->compute = compute;
    g->scale = scale;
    g->transpose_a = a;
    g->transpose_b = b;
    g->epilogue = epilogue;
    if (place != CUBLASLT_POINTER_MODE_HOST)
        g->beta = NULL;
}

static void matrices_tell(struct gemm *g, cublasLtMatrixLayout_t a_layout,
                          cublasLtMatrixLayout_t b_layout,
                          cublasLtMatrixLayout_t c_layout,
                          cublasLtMatrixLayout_t d_layout)
{
    const struct matrix a = matrix_of(a_layout), b = matrix_of(b_layout),
                        c = matrix_of(c_layout), d = matrix_of(d_layout);

    g->m = (int64_t)d.rows;
    g->n = (int64_t)d.columns;
    g->k = (int64_t)(g->transpose_a ? a.rows : a.columns);
    g->batch = d.batch;
    g->type_a = a.type;
    g->type_b = b.type;
    g->type_c = c.type;
    g->type_d = d.type;
    g->lda = a.leading;
    g->ldb = b.leading;
    g->ldc = c.leading;
    g->ldd = d.leading;
    g->stride_a = a.stride;
    g->stride_b = b.stride;
    g->stride_c = d.stride;
}

cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t problem, const void *alpha,
    const void *A, cublasLtMatrixLayout_t a, const void *B,
    cublasLtMatrixLayout_t b, const void *beta, const void *C,
    cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
    const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
    cudaStream_t stream)
{
    REAL_WORK(cublasLtMatmul,
              (handle, problem, alpha, A, a, B, b, beta, C, c, D, d, algorithm,
               workspace, bytes, stream),
              NAME_OF("cublasLtMatmul"), stream, {
                  struct gemm g = {.stream = (uint64_t)stream,
                                   .a = A,
                                   .b = B,
                                   .c = D,
                                   .beta = beta,
                                   .workspace_bytes = bytes};
                  problem_tell(problem, &g);
                  matrices_tell(&g, a, b, c, d);
                  tap_product(&call, NAME_OF("cublasLtMatmul"), &g);
              });
}
