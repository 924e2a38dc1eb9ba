/* SPDX-License-Identifier: Apache-2.0
 * cuBLASLt: descriptors that hold attributes, one algorithm for every problem,
 * and the product itself. The program gives the workspace; its size is the
 * limit that it asked for. */
#include <cublasLt.h>
#include <stdint.h>
#include <string.h>

#include "capture/core/device.h"
#include "capture/core/gemm.h"
#include "capture/core/handle.h"
#include "capture/core/record.h"

#if MEMSIM_CUDA_MAJOR >= 13
#define VERSION 130100
#else
#define VERSION 120405
#endif

#define ATTRIBUTES 48 /* more than the highest number of any descriptor */

/* Any of the descriptors: what was set, as 8 bytes each. Programs that put them
 * on their stack (cublasLt...Init) are not served. */
struct descriptor {
    uint64_t values[ATTRIBUTES];
    uint8_t bytes[ATTRIBUTES];
};

_Static_assert(sizeof(struct descriptor) <= HANDLE_BYTES_MAX,
               "descriptors are handles");

static struct descriptor *descriptor_get(const void *handle)
{
    return memsim_handle_get(HANDLE_DESCRIPTOR, handle);
}

static cublasStatus_t descriptor_new(void *handle)
{
    struct descriptor *d = memsim_handle_new(HANDLE_DESCRIPTOR, sizeof *d);

    if (!d)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(handle, &d, sizeof d);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t descriptor_free(void *handle)
{
    return memsim_handle_free(HANDLE_DESCRIPTOR, handle)
               ? CUBLAS_STATUS_INVALID_VALUE
               : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t descriptor_set(void *handle, unsigned attribute,
                                     const void *value, size_t bytes)
{
    struct descriptor *d = descriptor_get(handle);

    if (!d || !value || !bytes || bytes > 8 || attribute >= ATTRIBUTES)
        return CUBLAS_STATUS_INVALID_VALUE;
    d->values[attribute] = 0;
    memcpy(&d->values[attribute], value, bytes);
    d->bytes[attribute] = (uint8_t)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t descriptor_read(const void *handle, unsigned attribute,
                                      void *value, size_t bytes,
                                      size_t *written)
{
    const struct descriptor *d = descriptor_get(handle);

    if (!d || attribute >= ATTRIBUTES)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (written)
        *written = d->bytes[attribute] ? d->bytes[attribute] : bytes;
    if (!bytes)
        return CUBLAS_STATUS_SUCCESS;
    if (!value || bytes > 8)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, &d->values[attribute], bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define ACCESS(Name, T, attribute_type)                                        \
    cublasStatus_t cublasLt##Name##Destroy(T handle)                           \
    {                                                                          \
        return descriptor_free(handle);                                        \
    }                                                                          \
    cublasStatus_t cublasLt##Name##SetAttribute(                               \
        T handle, attribute_type attribute, const void *value, size_t bytes)   \
    {                                                                          \
        return descriptor_set(handle, (unsigned)attribute, value, bytes);      \
    }                                                                          \
    cublasStatus_t cublasLt##Name##GetAttribute(                               \
        T handle, attribute_type attribute, void *value, size_t bytes,         \
        size_t *written)                                                       \
    {                                                                          \
        return descriptor_read(handle, (unsigned)attribute, value, bytes,      \
                               written);                                       \
    }

ACCESS(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t)
ACCESS(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t)
ACCESS(MatmulPreference, cublasLtMatmulPreference_t,
       cublasLtMatmulPreferenceAttributes_t)
ACCESS(MatrixTransformDesc, cublasLtMatrixTransformDesc_t,
       cublasLtMatrixTransformDescAttributes_t)

static void put(void *handle, unsigned attribute, int64_t value, size_t bytes)
{
    descriptor_set(handle, attribute, &value, bytes);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    cublasStatus_t status = descriptor_new(desc);

    if (status)
        return status;
    put(*desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute, 4);
    put(*desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale, 4);
    put(*desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT, 4);
    return status;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    cublasStatus_t status = descriptor_new(layout);

    if (status)
        return status;
    put(*layout, CUBLASLT_MATRIX_LAYOUT_TYPE, type, 4);
    put(*layout, CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL, 4);
    put(*layout, CUBLASLT_MATRIX_LAYOUT_ROWS, (int64_t)rows, 8);
    put(*layout, CUBLASLT_MATRIX_LAYOUT_COLS, (int64_t)cols, 8);
    put(*layout, CUBLASLT_MATRIX_LAYOUT_LD, ld, 8);
    put(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1, 4);
    return status;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    return descriptor_new(p);
}

cublasStatus_t
cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *desc,
                                  cudaDataType scale)
{
    cublasStatus_t status = descriptor_new(desc);

    if (!status)
        put(*desc, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, scale, 4);
    return status;
}

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

/* One algorithm that serves every problem and needs no workspace: PyTorch
 * allocates the workspace that it allows, not the one that is needed. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t results[], int *count)
{
    (void)handle;
    (void)preference;
    *count = 0;
    if (!descriptor_get(desc) || !descriptor_get(a) || !descriptor_get(b) ||
        !descriptor_get(c) || !descriptor_get(d) || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(results, 0, sizeof *results);
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1.0f;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

#define DESC(d, name)   ((int64_t)(d)->values[CUBLASLT_MATMUL_DESC_##name])
#define LAYOUT(l, name) ((int64_t)(l)->values[CUBLASLT_MATRIX_LAYOUT_##name])

cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
    const void *A, cublasLtMatrixLayout_t a_layout, const void *B,
    cublasLtMatrixLayout_t b_layout, const void *beta, const void *C,
    cublasLtMatrixLayout_t c_layout, void *D, cublasLtMatrixLayout_t d_layout,
    const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
    cudaStream_t stream)
{
    const struct descriptor *p = descriptor_get(desc);
    const struct descriptor *a = descriptor_get(a_layout);
    const struct descriptor *b = descriptor_get(b_layout);
    const struct descriptor *c = descriptor_get(c_layout);
    const struct descriptor *d = descriptor_get(d_layout);

    (void)handle, (void)alpha, (void)beta, (void)C, (void)algorithm;
    (void)workspace;
    if (!p || !a || !b || !c || !d)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct gemm g = {
        .stream = (uint64_t)stream,
        .m = LAYOUT(d, ROWS),
        .n = LAYOUT(d, COLS),
        .k = DESC(p, TRANSA) ? LAYOUT(a, ROWS) : LAYOUT(a, COLS),
        .batch = LAYOUT(d, BATCH_COUNT),
        .type_a = (int)LAYOUT(a, TYPE),
        .type_b = (int)LAYOUT(b, TYPE),
        .type_c = (int)LAYOUT(c, TYPE),
        .type_d = (int)LAYOUT(d, TYPE),
        .compute = (int)DESC(p, COMPUTE_TYPE),
        .scale = (int)DESC(p, SCALE_TYPE),
        .transpose_a = (int)DESC(p, TRANSA),
        .transpose_b = (int)DESC(p, TRANSB),
        .lda = LAYOUT(a, LD),
        .ldb = LAYOUT(b, LD),
        .ldc = LAYOUT(c, LD),
        .ldd = LAYOUT(d, LD),
        .stride_a = LAYOUT(a, STRIDED_BATCH_OFFSET),
        .stride_b = LAYOUT(b, STRIDED_BATCH_OFFSET),
        .stride_c = LAYOUT(d, STRIDED_BATCH_OFFSET),
        .a = A,
        .b = B,
        .c = D,
        .epilogue = (uint32_t)DESC(p, EPILOGUE),
        .workspace_bytes = bytes,
    };
    return memsim_gemm(NAME_OF("cublasLtMatmul"), &g)
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}
