/* SPDX-License-Identifier: Apache-2.0
 * Sparse matrices: descriptors, buffers, counts that are not known, and the
 * product whose result is allocated half way. cuSPARSELt and cuFile too. */
#include <cuda_runtime_api.h>
#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>

#include "capture/cusparselt/cusparselt_fake.h"
#include "check.h"
#include "cudnn_trace.h"
#include "late.h"

#define SPARSE "libcusparse.so.12"
#define cusparseCreate LATE(SPARSE, cusparseCreate)
#define cusparseCreateBsrsv2Info LATE(SPARSE, cusparseCreateBsrsv2Info)
#define cusparseCreateCsr LATE(SPARSE, cusparseCreateCsr)
#define cusparseCreateDnMat LATE(SPARSE, cusparseCreateDnMat)
#define cusparseCreateMatDescr LATE(SPARSE, cusparseCreateMatDescr)
#define cusparseCsrSetStridedBatch LATE(SPARSE, cusparseCsrSetStridedBatch)
#define cusparseDestroy LATE(SPARSE, cusparseDestroy)
#define cusparseDestroyMatDescr LATE(SPARSE, cusparseDestroyMatDescr)
#define cusparseDestroySpMat LATE(SPARSE, cusparseDestroySpMat)
#define cusparseGetErrorName LATE(SPARSE, cusparseGetErrorName)
#define cusparseGetErrorString LATE(SPARSE, cusparseGetErrorString)
#define cusparseGetMatFillMode LATE(SPARSE, cusparseGetMatFillMode)
#define cusparseGetMatIndexBase LATE(SPARSE, cusparseGetMatIndexBase)
#define cusparseGetMatType LATE(SPARSE, cusparseGetMatType)
#define cusparseSetMatFillMode LATE(SPARSE, cusparseSetMatFillMode)
#define cusparseSpGEMM_compute LATE(SPARSE, cusparseSpGEMM_compute)
#define cusparseSpGEMM_copy LATE(SPARSE, cusparseSpGEMM_copy)
#define cusparseSpGEMM_createDescr LATE(SPARSE, cusparseSpGEMM_createDescr)
#define cusparseSpGEMM_workEstimation \
    LATE(SPARSE, cusparseSpGEMM_workEstimation)
#define cusparseSpMM LATE(SPARSE, cusparseSpMM)
#define cusparseSpMM_bufferSize LATE(SPARSE, cusparseSpMM_bufferSize)
#define cusparseSpMatGetAttribute LATE(SPARSE, cusparseSpMatGetAttribute)
#define cusparseSpMatGetSize LATE(SPARSE, cusparseSpMatGetSize)
#define cusparseSpMatGetStridedBatch LATE(SPARSE, cusparseSpMatGetStridedBatch)
#define cusparseSpMatGetValues LATE(SPARSE, cusparseSpMatGetValues)
#define cusparseSpMatSetAttribute LATE(SPARSE, cusparseSpMatSetAttribute)
#define cusparseSpMatSetValues LATE(SPARSE, cusparseSpMatSetValues)
#define cusparseSpSM_bufferSize LATE(SPARSE, cusparseSpSM_bufferSize)
#define cusparseSpSM_createDescr LATE(SPARSE, cusparseSpSM_createDescr)
#define cusparseSpSM_destroyDescr LATE(SPARSE, cusparseSpSM_destroyDescr)
#define cusparseXbsrsv2_zeroPivot LATE(SPARSE, cusparseXbsrsv2_zeroPivot)
#define cusparseXcsrgeam2Nnz LATE(SPARSE, cusparseXcsrgeam2Nnz)

static cusparseHandle_t handle_new(void)
{
    cusparseHandle_t handle = NULL;

    CHECK(!cusparseCreate(&handle));
    return handle;
}

/* Device memory of zeros, which stays: rows that are empty. */
static void *zeros(int64_t count)
{
    void *p = NULL;

    CHECK(!cudaMalloc(&p, (size_t)count * 4 + 4));
    CHECK(!cudaMemset(p, 0, (size_t)count * 4 + 4));
    return p;
}

static cusparseSpMatDescr_t csr(int64_t rows, int64_t columns, int64_t count)
{
    cusparseSpMatDescr_t matrix = NULL;

    CHECK(!cusparseCreateCsr(&matrix, rows, columns, count, zeros(rows),
                             zeros(count), zeros(count), CUSPARSE_INDEX_32I,
                             CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                             CUDA_R_32F));
    return matrix;
}

static cusparseDnMatDescr_t dense(int64_t rows, int64_t columns)
{
    cusparseDnMatDescr_t matrix = NULL;

    CHECK(!cusparseCreateDnMat(&matrix, rows, columns, rows,
                               zeros(rows * columns), CUDA_R_32F,
                               CUSPARSE_ORDER_COL));
    return matrix;
}

static int64_t count_of(cusparseSpMatDescr_t matrix)
{
    int64_t rows, columns, count = -1;

    CHECK(!cusparseSpMatGetSize(matrix, &rows, &columns, &count));
    return count;
}

TEST(descriptors_give_back_what_they_got)
{
    cusparseSpMatDescr_t matrix = csr(10, 20, 30);
    cusparseFillMode_t fill = CUSPARSE_FILL_MODE_UPPER, got_fill;
    int64_t rows, columns, count;
    int values, batch;
    void *got;

    CHECK(!cusparseSpMatGetSize(matrix, &rows, &columns, &count));
    CHECK(rows == 10 && columns == 20 && count == 30);
    CHECK(!cusparseSpMatSetValues(matrix, &values));
    CHECK(!cusparseSpMatGetValues(matrix, &got));
    CHECK(got == &values);
    CHECK(!cusparseSpMatSetAttribute(matrix, CUSPARSE_SPMAT_FILL_MODE, &fill,
                                     sizeof fill));
    CHECK(!cusparseSpMatGetAttribute(matrix, CUSPARSE_SPMAT_FILL_MODE,
                                     &got_fill, sizeof got_fill));
    CHECK(got_fill == fill);
    CHECK_CODE(
        cusparseSpMatSetAttribute(matrix, CUSPARSE_SPMAT_FILL_MODE, &fill, 1),
        CUSPARSE_STATUS_INVALID_VALUE);
    CHECK(!cusparseCsrSetStridedBatch(matrix, 4, 11, 30));
    CHECK(!cusparseSpMatGetStridedBatch(matrix, &batch));
    CHECK_UINT(batch, 4);
    CHECK(!cusparseDestroySpMat(matrix));
    CHECK(!cusparseDestroySpMat(NULL));
    need_fake("handles after their end");
    CHECK_CODE(cusparseSpMatGetSize(matrix, &rows, &columns, &count),
               CUSPARSE_STATUS_INVALID_VALUE);
}

TEST(old_descriptors_have_defaults)
{
    cusparseMatDescr_t matrix;

    CHECK(!cusparseCreateMatDescr(&matrix));
    CHECK_CODE(cusparseGetMatType(matrix), CUSPARSE_MATRIX_TYPE_GENERAL);
    CHECK_CODE(cusparseGetMatIndexBase(matrix), CUSPARSE_INDEX_BASE_ZERO);
    CHECK(!cusparseSetMatFillMode(matrix, CUSPARSE_FILL_MODE_UPPER));
    CHECK_CODE(cusparseGetMatFillMode(matrix), CUSPARSE_FILL_MODE_UPPER);
    CHECK(!cusparseDestroyMatDescr(matrix));
}

TEST(a_product_with_a_dense_matrix_is_recorded)
{
    cusparseHandle_t handle = handle_new();
    cusparseSpMatDescr_t a = csr(100, 200, 1234);
    float one = 1;
    size_t bytes = 99;

    CHECK(!cusparseSpMM_bufferSize(
        handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
        CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, dense(200, 7), &one,
        dense(100, 7), CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, &bytes));
    answer((int64_t)bytes, "buffer of cusparseSpMM 100x200, 1234, 7");
    CHECK(bytes == 0 || is_real());
    CHECK(!cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                        CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a,
                        dense(200, 7), &one, dense(100, 7), CUDA_R_32F,
                        CUSPARSE_SPMM_ALG_DEFAULT,
                        bytes ? zeros((int64_t)bytes / 4) : NULL));
    CHECK(!cudaDeviceSynchronize());
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.count, 1);
    CHECK_UINT(seen.call.a, 100);
    CHECK_UINT(seen.call.b, 200);
    CHECK_UINT(seen.call.c, 1234);
    CHECK_UINT(seen.call.d, 7);
}

TEST(a_solve_keeps_its_levels)
{
    cusparseHandle_t handle = handle_new();
    cusparseSpSMDescr_t state;
    float one = 1;
    size_t bytes = 0;

    CHECK(!cusparseSpSM_createDescr(&state));
    CHECK(!cusparseSpSM_bufferSize(
        handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
        CUSPARSE_OPERATION_NON_TRANSPOSE, &one, csr(100, 100, 500),
        dense(100, 3), dense(100, 3), CUDA_R_32F, CUSPARSE_SPSM_ALG_DEFAULT,
        state, &bytes));
    answer((int64_t)bytes, "buffer of cusparseSpSM 100, 500, 3");
    CHECK(bytes == 4 * 100 + 4 * 500 || is_real());
    CHECK(!cusparseSpSM_destroyDescr(state));
}

/* Both phases of a product, as PyTorch runs them. */
static void multiply(cusparseSpMatDescr_t a, cusparseSpMatDescr_t b,
                     cusparseSpMatDescr_t c)
{
    const cusparseOperation_t as_is = CUSPARSE_OPERATION_NON_TRANSPOSE;
    const cusparseSpGEMMAlg_t alg = CUSPARSE_SPGEMM_DEFAULT;
    cusparseHandle_t handle = handle_new();
    cusparseSpGEMMDescr_t state;
    size_t first = 0, second = 0;
    float one = 1;
    void *buffer;

    CHECK(!cudaMalloc(&buffer, 1 << 20));
    CHECK(!cusparseSpGEMM_createDescr(&state));
    CHECK(!cusparseSpGEMM_workEstimation(handle, as_is, as_is, &one, a, b,
                                         &one, c, CUDA_R_32F, alg, state,
                                         &first, NULL));
    CHECK(!cusparseSpGEMM_workEstimation(handle, as_is, as_is, &one, a, b,
                                         &one, c, CUDA_R_32F, alg, state,
                                         &first, buffer));
    CHECK(!cusparseSpGEMM_compute(handle, as_is, as_is, &one, a, b, &one, c,
                                  CUDA_R_32F, alg, state, &second, NULL));
    CHECK_UINT(count_of(c), 0);
    CHECK(!cusparseSpGEMM_compute(handle, as_is, as_is, &one, a, b, &one, c,
                                  CUDA_R_32F, alg, state, &second, buffer));
    CHECK(!cusparseSpGEMM_copy(handle, as_is, as_is, &one, a, b, &one, c,
                               CUDA_R_32F, alg, state));
    CHECK(second > first);
}

TEST(a_sparse_product_has_the_count_to_expect)
{
    need_fake("counts that follow from sizes");
    cusparseSpMatDescr_t c = csr(1000, 1000, 0), full = csr(20, 20, 0);

    /* 10 of 1000 in each row: 1000^2 (1 - (1 - 0.01^2)^1000) */
    multiply(csr(1000, 1000, 10000), csr(1000, 1000, 10000), c);
    CHECK_NEAR((double)count_of(c), 95167.0, 1e-4);
    struct seen seen = trace_seen(TRACE_GUESS);
    CHECK_UINT(seen.count, 1);
    CHECK_UINT(seen.guess.elements, 1000000);
    CHECK_UINT(seen.guess.chosen, (uint64_t)count_of(c));
    multiply(csr(20, 20, 400), csr(20, 20, 400), full);
    CHECK_UINT(count_of(full), 400);
}

TEST(a_sum_has_the_count_to_expect)
{
    need_fake("counts that follow from sizes");
    cusparseHandle_t handle = handle_new();
    cusparseMatDescr_t matrix;
    int total = -1;

    CHECK(!cusparseCreateMatDescr(&matrix));
    CHECK(!cusparseXcsrgeam2Nnz(handle, 10, 10, matrix, 50, NULL, NULL, matrix,
                                50, NULL, NULL, matrix, NULL, &total, NULL));
    CHECK_UINT(total, 75);
    CHECK(!cusparseXcsrgeam2Nnz(handle, 10, 10, matrix, 0, NULL, NULL, matrix,
                                50, NULL, NULL, matrix, NULL, &total, NULL));
    CHECK_UINT(total, 50);
}

TEST(no_pivot_is_zero)
{
    need_fake("pivots of nothing");
    cusparseHandle_t handle = handle_new();
    bsrsv2Info_t info;
    int position = 5;

    CHECK(!cusparseCreateBsrsv2Info(&info));
    CHECK(!cusparseXbsrsv2_zeroPivot(handle, info, &position));
    CHECK(position == -1);
}

TEST(bad_handles_are_refused)
{
    cusparseHandle_t handle = handle_new();
    cusparseSpMatDescr_t matrix = (cusparseSpMatDescr_t)&handle;
    int64_t n;

    CHECK_STR(cusparseGetErrorName(CUSPARSE_STATUS_ZERO_PIVOT),
              "CUSPARSE_STATUS_ZERO_PIVOT");
    CHECK(cusparseGetErrorString((cusparseStatus_t)77));
    CHECK(!cusparseDestroy(handle));
    need_fake("handles after their end, and invented ones");
    CHECK_CODE(cusparseSpMatGetSize(matrix, &n, &n, &n),
               CUSPARSE_STATUS_INVALID_VALUE);
    CHECK_CODE(cusparseDestroy(handle), CUSPARSE_STATUS_NOT_INITIALIZED);
}

/* NVIDIA's header of these is C++. */
cusparseStatus_t cusparseLtInit(lt_object *);
cusparseStatus_t cusparseLtStructuredDescriptorInit(
    const lt_object *, lt_object *, int64_t, int64_t, int64_t, uint32_t,
    cudaDataType, cusparseOrder_t, int);
cusparseStatus_t cusparseLtMatDescriptorDestroy(const lt_object *);
cusparseStatus_t cusparseLtSpMMACompressedSize2(const lt_object *,
                                                const lt_object *, size_t *,
                                                size_t *);

TEST(compression_keeps_half_and_its_places)
{
    lt_object handle = {0}, matrix = {0};
    size_t bytes = 0, buffer = 9;

    CHECK_CODE(cusparseLtStructuredDescriptorInit(&handle, &matrix, 64, 128,
                                                  128, 16, CUDA_R_16F,
                                                  CUSPARSE_ORDER_ROW, 0),
               CUSPARSE_STATUS_NOT_INITIALIZED);
    CHECK(!cusparseLtInit(&handle));
    CHECK(!cusparseLtStructuredDescriptorInit(&handle, &matrix, 64, 128, 128,
                                              16, CUDA_R_16F,
                                              CUSPARSE_ORDER_ROW, 0));
    CHECK(!cusparseLtSpMMACompressedSize2(&handle, &matrix, &bytes, &buffer));
    CHECK_UINT(bytes, 64 * 128 * 2 * 9 / 16);
    CHECK_UINT(buffer, 0);
    CHECK(!cusparseLtStructuredDescriptorInit(&handle, &matrix, 64, 128, 128,
                                              16, CUDA_R_8I,
                                              CUSPARSE_ORDER_ROW, 0));
    CHECK(!cusparseLtSpMMACompressedSize2(&handle, &matrix, &bytes, &buffer));
    CHECK_UINT(bytes, 64 * 128 * 10 / 16);
    CHECK(!cusparseLtMatDescriptorDestroy(&matrix));
    CHECK_CODE(
        cusparseLtSpMMACompressedSize2(&handle, &matrix, &bytes, &buffer),
        CUSPARSE_STATUS_INVALID_VALUE);
}
