/* SPDX-License-Identifier: Apache-2.0
 * cuSPARSELt: objects that nobody set up are refused, compression takes half
 * of the values and their places, pruning is recorded. */
#include <cuda_runtime_api.h>
#include <cusparse.h>

#include "check.h"
#include "cudnn_trace.h"

/* Objects have 512 bytes; NVIDIA's header is in no package of the toolkit. */
typedef struct {
    char bytes[512];
} object;

int cusparseLtInit(object *handle);
int cusparseLtDestroy(const object *handle);
int cusparseLtStructuredDescriptorInit(const object *handle, object *matrix,
                                       int64_t rows, int64_t columns,
                                       int64_t leading, uint32_t alignment,
                                       cudaDataType type, cusparseOrder_t order,
                                       int sparsity);
int cusparseLtMatDescriptorDestroy(const object *matrix);
int cusparseLtSpMMACompressedSize2(const object *handle, const object *matrix,
                                   size_t *bytes, size_t *buffer_bytes);
int cusparseLtSpMMAPrune2(const object *handle, const object *matrix,
                          int is_sparse_a, cusparseOperation_t op,
                          const void *in, void *out, int algorithm,
                          cudaStream_t stream);

static object handle, matrix;

static int matrix_new(int64_t rows)
{
    return cusparseLtStructuredDescriptorInit(&handle, &matrix, rows, 128, 128,
                                              16, CUDA_R_16F,
                                              CUSPARSE_ORDER_ROW, 0);
}

TEST(objects_that_nobody_set_up_are_refused)
{
    size_t bytes, buffer;

    CHECK(matrix_new(64) == CUSPARSE_STATUS_NOT_INITIALIZED);
    CHECK(!cusparseLtInit(&handle));
    CHECK(matrix_new(0) == CUSPARSE_STATUS_INVALID_VALUE);
    CHECK_CODE(
        cusparseLtSpMMACompressedSize2(&handle, &matrix, &bytes, &buffer),
        CUSPARSE_STATUS_INVALID_VALUE);
    CHECK(!matrix_new(64));
    CHECK(!cusparseLtMatDescriptorDestroy(&matrix));
    CHECK_CODE(cusparseLtMatDescriptorDestroy(&matrix),
               CUSPARSE_STATUS_INVALID_VALUE);
    CHECK(!cusparseLtDestroy(&handle));
}

TEST(a_compressed_matrix_has_half_of_the_values_and_their_places)
{
    size_t bytes = 0, buffer = 9, dense = 64 * 128 * 2;

    CHECK(!cusparseLtInit(&handle) && !matrix_new(64));
    CHECK(!cusparseLtSpMMACompressedSize2(&handle, &matrix, &bytes, &buffer));
    CHECK(bytes > dense / 2 && bytes < dense && !buffer);
}

TEST(pruning_is_recorded)
{
    void *p;

    CHECK(!cudaMalloc(&p, 64 * 128 * 2));
    CHECK(!cusparseLtInit(&handle) && !matrix_new(64));
    CHECK(!cusparseLtSpMMAPrune2(&handle, &matrix, 1,
                                 CUSPARSE_OPERATION_NON_TRANSPOSE, p, p, 0, 0));
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.call.a, 64);
    CHECK_UINT(seen.call.b, 128);
    CHECK_UINT(seen.call.e, CUDA_R_16F);
}
