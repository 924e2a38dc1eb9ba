/* SPDX-License-Identifier: Apache-2.0
 * What cuSPARSE's files share. */
#ifndef MEMSIM_CAPTURE_CUSPARSE_CUSPARSE_FAKE_H
#define MEMSIM_CAPTURE_CUSPARSE_CUSPARSE_FAKE_H

/* Half of the library is deprecated, and PyTorch calls that half too. */
#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>
#include <stdbool.h>
#include <stdint.h>

/* What a cusparseHandle_t points to. */
struct cusparse {
    int device;
    uint64_t stream;
    cusparsePointerMode_t pointer_mode;
};

/* What any of the descriptors points to: a vector has one column, and what is
 * dense has rows * columns values and no indices. */
struct sparse {
    cusparseFormat_t format; /* 0: dense */
    int64_t rows, columns, count;
    int64_t block_rows, block_columns; /* of BSR and blocked ELL */
    int64_t slice;                     /* of sliced ELL: its values */
    void *offsets, *indices, *values;
    cusparseIndexType_t offset_type, index_type;
    cusparseIndexBase_t base;
    cudaDataType type;
    cusparseOrder_t order;
    int64_t leading;
    int batch;
    int64_t batch_stride, index_stride;
    cusparseFillMode_t fill;
    cusparseDiagType_t diagonal;
};

struct cusparse *cusparse_get(cusparseHandle_t handle);

/* DESCRIPTOR's object, or NULL where it is not a live one. */
struct sparse *sparse_get(const void *descriptor);

/* The operations that want a buffer: rows of workspace.c. */
enum sparse_op {
    SPARSE_MV,
    SPARSE_MM,
    SPARSE_SDDMM,
    SPARSE_SOLVE,
    SPARSE_GEMM_FIRST,
    SPARSE_GEMM_SECOND,
    SPARSE_ADD,
    SPARSE_SORT_COO,
    SPARSE_SORT_CSR,
    SPARSE_CONVERT,
    SPARSE_OPS,
};

struct sparse_shape {
    cudaDataType type;
    int64_t rows, columns, count; /* of the sparse matrix */
    int64_t width;                /* columns of the dense one */
    int64_t block;                /* rows of a block */
    int64_t batch;
};

/* A ..._bufferSize function. */
cusparseStatus_t sparse_size(cusparseHandle_t handle, enum sparse_op op,
                             const struct sparse_shape *shape, size_t *bytes);

/* The work itself, recorded under NAME. */
cusparseStatus_t sparse_run(cusparseHandle_t handle, uint32_t name,
                            const struct sparse_shape *shape);

/* Non-zeros of a product and of a sum whose operands have theirs at random
 * places: what stands for numbers that are not known. */
int64_t sparse_product_count(const struct sparse *a, const struct sparse *b);
int64_t sparse_sum_count(int64_t rows, int64_t columns, int64_t count_a,
                         int64_t count_b);

/* Records that CHOSEN of so many PLACES stand for such a number, and tells. */
void sparse_guess(cusparseHandle_t handle, uint32_t name, int64_t places,
                  int64_t chosen);

#endif
