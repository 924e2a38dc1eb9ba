/* SPDX-License-Identifier: Apache-2.0
 * Descriptors of matrices and vectors, sparse and dense: one structure for all,
 * with a constant and a plain variant of each function. */
#include "capture/cusparse/cusparse_fake.h"

#include <string.h>

#include "capture/core/base/handle.h"

#define API cusparseStatus_t
#define OK  CUSPARSE_STATUS_SUCCESS
#define BAD CUSPARSE_STATUS_INVALID_VALUE

struct sparse *sparse_get(const void *descriptor)
{
    return memsim_handle_get(HANDLE_DESCRIPTOR, descriptor);
}

/* Writes the new descriptor's address where DESCRIPTOR, of any of the
 * pointer types, is. */
static API sparse_new(void *descriptor, const struct sparse *like)
{
    if (!descriptor || like->rows < 0 || like->columns < 0 || like->count < 0)
        return BAD;
    struct sparse *s = memsim_handle_new(HANDLE_DESCRIPTOR, sizeof *s);
    if (!s)
        return CUSPARSE_STATUS_ALLOC_FAILED;
    *s = *like;
    s->batch = 1;
    memcpy(descriptor, &s, sizeof s);
    return OK;
}

static API sparse_free(const void *descriptor)
{
    return descriptor &&
                   memsim_handle_free(HANDLE_DESCRIPTOR, (void *)descriptor)
               ? BAD
               : OK;
}

#define NEW(...)                                                               \
    {                                                                          \
        return sparse_new(descriptor, &(const struct sparse){__VA_ARGS__});    \
    }

/* CONST is `Const` or nothing, C the qualifier that goes with it. */
#define CREATE(CONST, C)                                                       \
    API cusparseCreate##CONST##Csr(                                            \
        cusparse##CONST##SpMatDescr_t *descriptor, int64_t rows, int64_t cols, \
        int64_t nnz, C void *offsets, C void *indices, C void *values,         \
        cusparseIndexType_t offset_type, cusparseIndexType_t index_type,       \
        cusparseIndexBase_t base, cudaDataType type)                           \
    NEW(.format = CUSPARSE_FORMAT_CSR, .rows = rows, .columns = cols,          \
        .count = nnz, .offsets = (void *)offsets, .indices = (void *)indices,  \
        .values = (void *)values, .offset_type = offset_type,                  \
        .index_type = index_type, .base = base, .type = type)                  \
    API cusparseCreate##CONST##Csc(                                            \
        cusparse##CONST##SpMatDescr_t *descriptor, int64_t rows, int64_t cols, \
        int64_t nnz, C void *offsets, C void *indices, C void *values,         \
        cusparseIndexType_t offset_type, cusparseIndexType_t index_type,       \
        cusparseIndexBase_t base, cudaDataType type)                           \
    NEW(.format = CUSPARSE_FORMAT_CSC, .rows = rows, .columns = cols,          \
        .count = nnz, .offsets = (void *)offsets, .indices = (void *)indices,  \
        .values = (void *)values, .offset_type = offset_type,                  \
        .index_type = index_type, .base = base, .type = type)                  \
    API cusparseCreate##CONST##Coo(                                            \
        cusparse##CONST##SpMatDescr_t *descriptor, int64_t rows, int64_t cols, \
        int64_t nnz, C void *row_indices, C void *indices, C void *values,     \
        cusparseIndexType_t index_type, cusparseIndexBase_t base,              \
        cudaDataType type)                                                     \
    NEW(.format = CUSPARSE_FORMAT_COO, .rows = rows, .columns = cols,          \
        .count = nnz, .offsets = (void *)row_indices,                          \
        .indices = (void *)indices, .values = (void *)values,                  \
        .offset_type = index_type, .index_type = index_type, .base = base,     \
        .type = type)                                                          \
    API cusparseCreate##CONST##Bsr(                                            \
        cusparse##CONST##SpMatDescr_t *descriptor, int64_t rows, int64_t cols, \
        int64_t nnz, int64_t block_rows, int64_t block_columns,                \
        C void *offsets, C void *indices, C void *values,                      \
        cusparseIndexType_t offset_type, cusparseIndexType_t index_type,       \
        cusparseIndexBase_t base, cudaDataType type, cusparseOrder_t order)    \
    NEW(.format = CUSPARSE_FORMAT_BSR, .rows = rows, .columns = cols,          \
        .count = nnz, .block_rows = block_rows,                                \
        .block_columns = block_columns, .offsets = (void *)offsets,            \
        .indices = (void *)indices, .values = (void *)values,                  \
        .offset_type = offset_type, .index_type = index_type, .base = base,    \
        .type = type, .order = order)                                          \
    API cusparseCreate##CONST##BlockedEll(                                     \
        cusparse##CONST##SpMatDescr_t *descriptor, int64_t rows, int64_t cols, \
        int64_t block, int64_t ell_columns, C void *indices, C void *values,   \
        cusparseIndexType_t index_type, cusparseIndexBase_t base,              \
        cudaDataType type)                                                     \
    NEW(.format = CUSPARSE_FORMAT_BLOCKED_ELL, .rows = rows, .columns = cols,  \
        .count = rows * ell_columns, .block_rows = block,                      \
        .block_columns = ell_columns, .indices = (void *)indices,              \
        .values = (void *)values, .index_type = index_type, .base = base,      \
        .type = type)                                                          \
    API cusparseCreate##CONST##SlicedEll(                                      \
        cusparse##CONST##SpMatDescr_t *descriptor, int64_t rows, int64_t cols, \
        int64_t nnz, int64_t values_size, int64_t slice, C void *offsets,      \
        C void *indices, C void *values, cusparseIndexType_t offset_type,      \
        cusparseIndexType_t index_type, cusparseIndexBase_t base,              \
        cudaDataType type)                                                     \
    NEW(.format = CUSPARSE_FORMAT_SLICED_ELLPACK, .rows = rows,                \
        .columns = cols, .count = nnz, .slice = values_size,                   \
        .block_rows = slice, .offsets = (void *)offsets,                       \
        .indices = (void *)indices, .values = (void *)values,                  \
        .offset_type = offset_type, .index_type = index_type, .base = base,    \
        .type = type)                                                          \
    API cusparseCreate##CONST##SpVec(                                          \
        cusparse##CONST##SpVecDescr_t *descriptor, int64_t size, int64_t nnz,  \
        C void *indices, C void *values, cusparseIndexType_t index_type,       \
        cusparseIndexBase_t base, cudaDataType type)                           \
    NEW(.format = CUSPARSE_FORMAT_COO, .rows = size, .columns = 1,             \
        .count = nnz, .indices = (void *)indices, .values = (void *)values,    \
        .index_type = index_type, .base = base, .type = type)                  \
    API cusparseCreate##CONST##DnVec(                                          \
        cusparse##CONST##DnVecDescr_t *descriptor, int64_t size,               \
        C void *values, cudaDataType type)                                     \
    NEW(.rows = size, .columns = 1, .count = size, .values = (void *)values,   \
        .type = type)                                                          \
    API cusparseCreate##CONST##DnMat(                                          \
        cusparse##CONST##DnMatDescr_t *descriptor, int64_t rows, int64_t cols, \
        int64_t leading, C void *values, cudaDataType type,                    \
        cusparseOrder_t order)                                                 \
    NEW(.rows = rows, .columns = cols, .count = rows * cols,                   \
        .leading = leading, .values = (void *)values, .type = type,            \
        .order = order)

CREATE(, )
CREATE(Const, const)

#define DESTROY(Kind)                                                          \
    API cusparseDestroy##Kind(cusparseConst##Kind##Descr_t descriptor)         \
    {                                                                          \
        return sparse_free(descriptor);                                        \
    }

DESTROY(SpMat)
DESTROY(SpVec)
DESTROY(DnMat)
DESTROY(DnVec)

/* Functions that begin by looking up their descriptor. */
#define WITH(...)                                                              \
    {                                                                          \
        struct sparse *s = sparse_get(descriptor);                             \
                                                                               \
        if (!s)                                                                \
            return BAD;                                                        \
        __VA_ARGS__;                                                           \
        return OK;                                                             \
    }

#define VALUES(Kind)                                                           \
    API cusparse##Kind##GetValues(cusparse##Kind##Descr_t descriptor,          \
                                  void **values)                               \
    WITH(*values = s->values)                                                  \
    API cusparseConst##Kind##GetValues(                                        \
        cusparseConst##Kind##Descr_t descriptor, const void **values)          \
    WITH(*values = s->values)                                                  \
    API cusparse##Kind##SetValues(cusparse##Kind##Descr_t descriptor,          \
                                  void *values)                                \
    WITH(s->values = values)

VALUES(SpMat)
VALUES(SpVec)
VALUES(DnMat)
VALUES(DnVec)

#define COMPRESSED(Name, CONST, C)                                             \
    API cusparse##CONST##Name##Get(                                            \
        cusparse##CONST##SpMatDescr_t descriptor, int64_t *rows,               \
        int64_t *cols, int64_t *nnz, C void **offsets, C void **indices,       \
        C void **values, cusparseIndexType_t *offset_type,                     \
        cusparseIndexType_t *index_type, cusparseIndexBase_t *base,            \
        cudaDataType *type)                                                    \
    WITH(*rows = s->rows, *cols = s->columns, *nnz = s->count,                 \
         *offsets = s->offsets, *indices = s->indices, *values = s->values,    \
         *offset_type = s->offset_type, *index_type = s->index_type,           \
         *base = s->base, *type = s->type)
#define GET(CONST, C)                                                          \
    COMPRESSED(Csr, CONST, C)                                                  \
    COMPRESSED(Csc, CONST, C)                                                  \
    API cusparse##CONST##CooGet(                                               \
        cusparse##CONST##SpMatDescr_t descriptor, int64_t *rows,               \
        int64_t *cols, int64_t *nnz, C void **row_indices, C void **indices,   \
        C void **values, cusparseIndexType_t *index_type,                      \
        cusparseIndexBase_t *base, cudaDataType *type)                         \
    WITH(*rows = s->rows, *cols = s->columns, *nnz = s->count,                 \
         *row_indices = s->offsets, *indices = s->indices,                     \
         *values = s->values, *index_type = s->index_type, *base = s->base,    \
         *type = s->type)                                                      \
    API cusparse##CONST##SpVecGet(                                             \
        cusparse##CONST##SpVecDescr_t descriptor, int64_t *size,               \
        int64_t *nnz, C void **indices, C void **values,                       \
        cusparseIndexType_t *index_type, cusparseIndexBase_t *base,            \
        cudaDataType *type)                                                    \
    WITH(*size = s->rows, *nnz = s->count, *indices = s->indices,              \
         *values = s->values, *index_type = s->index_type, *base = s->base,    \
         *type = s->type)                                                      \
    API cusparse##CONST##DnVecGet(cusparse##CONST##DnVecDescr_t descriptor,    \
                                  int64_t *size, C void **values,              \
                                  cudaDataType *type)                          \
    WITH(*size = s->rows, *values = s->values, *type = s->type)                \
    API cusparse##CONST##DnMatGet(                                             \
        cusparse##CONST##DnMatDescr_t descriptor, int64_t *rows,               \
        int64_t *cols, int64_t *leading, C void **values, cudaDataType *type,  \
        cusparseOrder_t *order)                                                \
    WITH(*rows = s->rows, *cols = s->columns, *leading = s->leading,           \
         *values = s->values, *type = s->type, *order = s->order)

GET(, )
GET(Const, const)

API cusparseSpVecGetIndexBase(cusparseConstSpVecDescr_t descriptor,
                              cusparseIndexBase_t *base)
WITH(*base = s->base)
API cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t descriptor,
                              cusparseIndexBase_t *base)
WITH(*base = s->base)
API cusparseSpMatGetFormat(cusparseConstSpMatDescr_t descriptor,
                           cusparseFormat_t *format)
WITH(*format = s->format)
API cusparseSpMatGetSize(cusparseConstSpMatDescr_t descriptor, int64_t *rows,
                         int64_t *cols, int64_t *nnz)
WITH(*rows = s->rows, *cols = s->columns, *nnz = s->count)

#define POINTERS(Name)                                                         \
    API cusparse##Name##SetPointers(cusparseSpMatDescr_t descriptor,           \
                                    void *offsets, void *indices,              \
                                    void *values)                              \
    WITH(s->offsets = offsets, s->indices = indices, s->values = values)

POINTERS(Csr)
POINTERS(Csc)
POINTERS(Coo)

API cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t descriptor, int count,
                                 int64_t stride)
WITH(s->batch = count, s->batch_stride = stride)
API cusparseDnMatGetStridedBatch(cusparseConstDnMatDescr_t descriptor,
                                 int *count, int64_t *stride)
WITH(*count = s->batch, *stride = s->batch_stride)
API cusparseCooSetStridedBatch(cusparseSpMatDescr_t descriptor, int count,
                               int64_t stride)
WITH(s->batch = count, s->batch_stride = stride)
API cusparseCsrSetStridedBatch(cusparseSpMatDescr_t descriptor, int count,
                               int64_t offset_stride, int64_t stride)
WITH(s->batch = count, s->batch_stride = stride,
     s->index_stride = offset_stride)
API cusparseBsrSetStridedBatch(cusparseSpMatDescr_t descriptor, int count,
                               int64_t offset_stride, int64_t index_stride,
                               int64_t stride)
WITH(s->batch = count, s->batch_stride = stride, (void)index_stride,
     s->index_stride = offset_stride)
API cusparseSpMatGetStridedBatch(cusparseConstSpMatDescr_t descriptor,
                                 int *count)
WITH(*count = s->batch)

/* Where an attribute, which is an int, is kept. */
static void *attribute_place(struct sparse *s,
                             cusparseSpMatAttribute_t attribute,
                             size_t bytes)
{
    if (bytes != sizeof(int))
        return NULL;
    switch (attribute) {
    case CUSPARSE_SPMAT_FILL_MODE:
        return &s->fill;
    case CUSPARSE_SPMAT_DIAG_TYPE:
        return &s->diagonal;
    default:
        return NULL;
    }
}

API cusparseSpMatSetAttribute(cusparseSpMatDescr_t descriptor,
                              cusparseSpMatAttribute_t attribute, void *data,
                              size_t bytes)
{
    struct sparse *s = sparse_get(descriptor);
    void *place = s && data ? attribute_place(s, attribute, bytes) : NULL;

    if (!place)
        return BAD;
    memcpy(place, data, bytes);
    return OK;
}

API cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t descriptor,
                              cusparseSpMatAttribute_t attribute, void *data,
                              size_t bytes)
{
    struct sparse *s = sparse_get(descriptor);
    const void *place = s && data ? attribute_place(s, attribute, bytes) : NULL;

    if (!place)
        return BAD;
    memcpy(data, place, bytes);
    return OK;
}
