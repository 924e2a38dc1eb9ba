/* SPDX-License-Identifier: Apache-2.0
 * cuBLASLt: one algorithm for every problem, and the product itself. The
 * program gives the workspace; its size is the limit that it asked for. */
#include "capture/cublaslt/cublaslt_fake.h"

#include <stdbool.h>
#include <string.h>

#include "capture/core/work/library_call.h"
#include "capture/core/memory/device.h"
#include "capture/core/work/gemm.h"
#include "capture/core/base/handle.h"
#include "capture/core/run/record.h"

#if MEMSIM_CUDA_MAJOR >= 13
#define VERSION 130100
#else
#define VERSION 120405
#endif

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    int rc = memsim_device_open(memsim_device_current());

    if (rc)
        return rc == CORE_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED
                                        : CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = memsim_handle_new(HANDLE_CUBLASLT, sizeof(int));
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return memsim_handle_free(HANDLE_CUBLASLT, handle)
               ? CUBLAS_STATUS_NOT_INITIALIZED
               : CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return VERSION;
}

size_t cublasLtGetCudartVersion(void)
{
    return VERSION / 10000 * 1000;
}

/* The five descriptors of a product. */
struct problem {
    const struct lt_product *product;
    const struct lt_layout *a, *b, *c, *d;
};

/* False where one of them is none. */
static bool problem_get(struct problem *p, const void *product, const void *a,
                       const void *b, const void *c, const void *d)
{
    p->product = lt_get(product, LT_PRODUCT);
    p->a = lt_get(a, LT_LAYOUT);
    p->b = lt_get(b, LT_LAYOUT);
    p->c = lt_get(c, LT_LAYOUT);
    p->d = lt_get(d, LT_LAYOUT);
    return p->product && p->a && p->b && p->c && p->d;
}

/* It needs no workspace: PyTorch allocates what it allows, not what is
 * needed. */
static void result_set(cublasLtMatmulHeuristicResult_t *result)
{
    memset(result, 0, sizeof *result);
    result->state = CUBLAS_STATUS_SUCCESS;
    result->wavesCount = 1.0f;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t results[], int *count)
{
    struct problem p;

    (void)handle;
    (void)preference;
    *count = 0;
    if (!problem_get(&p, product, a, b, c, d) || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    result_set(results);
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale,
                                        cudaDataType_t type_a,
                                        cudaDataType_t type_b,
                                        cudaDataType_t type_c,
                                        cudaDataType_t type_d, int wanted,
                                        int ids[], int *count)
{
    (void)handle, (void)compute, (void)scale, (void)type_a, (void)type_b;
    (void)type_c, (void)type_d;
    if (wanted < 1 || !ids || !count)
        return CUBLAS_STATUS_INVALID_VALUE;
    ids[0] = 0;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* An algorithm is its configuration: words of 32 bits, by attribute, the first
 * of which is the id. */
cublasStatus_t cublasLtMatmulAlgoInit(
    cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
    cudaDataType_t type_a, cudaDataType_t type_b, cudaDataType_t type_c,
    cudaDataType_t type_d, int id, cublasLtMatmulAlgo_t *algorithm)
{
    (void)handle, (void)compute, (void)scale, (void)type_a, (void)type_b;
    (void)type_c, (void)type_d;
    if (id || !algorithm)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(algorithm, 0, sizeof *algorithm);
    return CUBLAS_STATUS_SUCCESS;
}

static char *configuration_place(const cublasLtMatmulAlgo_t *algorithm,
                                 unsigned attribute, size_t bytes)
{
    if (!algorithm || bytes > sizeof(uint32_t) ||
        attribute >= sizeof *algorithm / sizeof(uint32_t))
        return NULL;
    return (char *)algorithm + attribute * sizeof(uint32_t);
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(
    cublasLtMatmulAlgo_t *algorithm,
    cublasLtMatmulAlgoConfigAttributes_t attribute, const void *value,
    size_t bytes)
{
    char *place = configuration_place(algorithm, attribute, bytes);

    if (!place || !value || attribute == CUBLASLT_ALGO_CONFIG_ID)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(place, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t *algorithm,
    cublasLtMatmulAlgoConfigAttributes_t attribute, void *value, size_t bytes,
    size_t *written)
{
    const char *place = configuration_place(algorithm, attribute, bytes);

    if (!place || !value)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, place, bytes);
    if (written)
        *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    const cublasLtMatmulAlgo_t *algorithm,
    cublasLtMatmulHeuristicResult_t *result)
{
    struct problem p;

    (void)handle;
    if (!problem_get(&p, product, a, b, c, d) || !algorithm || !result)
        return CUBLAS_STATUS_INVALID_VALUE;
    result_set(result);
    result->algo = *algorithm;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha,
    const void *A, cublasLtMatrixLayout_t a_layout, const void *B,
    cublasLtMatrixLayout_t b_layout, const void *beta, const void *C,
    cublasLtMatrixLayout_t c_layout, void *D, cublasLtMatrixLayout_t d_layout,
    const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
    cudaStream_t stream)
{
    struct problem p;

    (void)handle, (void)alpha, (void)C, (void)algorithm;
    (void)workspace;
    if (!problem_get(&p, product, a_layout, b_layout, c_layout, d_layout))
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct gemm g = {
        .stream = (uint64_t)stream,
        .m = p.d->rows,
        .n = p.d->columns,
        .k = p.product->transpose[0] ? p.a->rows : p.a->columns,
        .batch = p.d->batch,
        .type_a = p.a->type,
        .type_b = p.b->type,
        .type_c = p.c->type,
        .type_d = p.d->type,
        .compute = p.product->compute,
        .scale = p.product->scale,
        .transpose_a = p.product->transpose[0],
        .transpose_b = p.product->transpose[1],
        .lda = p.a->leading,
        .ldb = p.b->leading,
        .ldc = p.c->leading,
        .ldd = p.d->leading,
        .stride_a = p.a->batch_stride,
        .stride_b = p.b->batch_stride,
        .stride_c = p.d->batch_stride,
        .a = A,
        .b = B,
        .c = D,
        .beta = beta,
        .epilogue = (uint32_t)p.product->epilogue,
        .workspace_bytes = bytes,
    };
    return memsim_gemm(NAME_OF("cublasLtMatmul"), &g)
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}

/* A change of layout or type, or a sum of two matrices. */
cublasStatus_t cublasLtMatrixTransform(
    cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t transform,
    const void *alpha, const void *A, cublasLtMatrixLayout_t a_layout,
    const void *beta, const void *B, cublasLtMatrixLayout_t b_layout, void *C,
    cublasLtMatrixLayout_t c_layout, cudaStream_t stream)
{
    const struct lt_layout *c = lt_get(c_layout, LT_LAYOUT);

    (void)handle, (void)alpha, (void)A, (void)beta, (void)B, (void)C;
    if (!lt_get(transform, LT_TRANSFORM) || !lt_get(a_layout, LT_LAYOUT) ||
        (b_layout && !lt_get(b_layout, LT_LAYOUT)) || !c)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct call call = {
        .name = NAME_OF("cublasLtMatrixTransform"),
        .stream = (uint64_t)stream,
        .values = {(uint64_t)c->rows, (uint64_t)c->columns, 0,
                   (uint64_t)c->batch, (uint64_t)c->type},
    };
    return memsim_call(&call) ? CUBLAS_STATUS_EXECUTION_FAILED
                              : CUBLAS_STATUS_SUCCESS;
}
