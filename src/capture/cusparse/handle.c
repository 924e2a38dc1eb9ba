/* SPDX-License-Identifier: Apache-2.0
 * Handles, the old matrix descriptors, and the objects that keep an analysis.
 * No public figure was found for what a handle takes of the GPU. */
#include "capture/cusparse/cusparse_fake.h"

#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/work/library.h"

#if MEMSIM_CUDA_MAJOR >= 13
static const int version[] = {12, 6, 3};
#else
static const int version[] = {12, 3, 1};
#endif

/* What a cusparseMatDescr_t points to; zeros are the defaults. */
struct old_matrix {
    cusparseMatrixType_t type;
    cusparseFillMode_t fill;
    cusparseDiagType_t diagonal;
    cusparseIndexBase_t base;
};

struct cusparse *cusparse_get(cusparseHandle_t handle)
{
    return memsim_handle_get(HANDLE_CUSPARSE, handle);
}

cusparseStatus_t cusparseCreate(cusparseHandle_t *handle)
{
    int device = memsim_device_current();

    if (!handle)
        return CUSPARSE_STATUS_INVALID_VALUE;
    if (memsim_device_open(device))
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    if (memsim_device_library_kernels(device, "cusparse",
                                      memsim_device_gpu()->cusparse_bytes))
        return CUSPARSE_STATUS_ALLOC_FAILED;
    struct cusparse *c = memsim_handle_new(HANDLE_CUSPARSE, sizeof *c);
    if (!c)
        return CUSPARSE_STATUS_ALLOC_FAILED;
    c->device = device;
    *handle = (cusparseHandle_t)c;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroy(cusparseHandle_t handle)
{
    return memsim_handle_free(HANDLE_CUSPARSE, handle)
               ? CUSPARSE_STATUS_NOT_INITIALIZED
               : CUSPARSE_STATUS_SUCCESS;
}

#define LIBRARY_STATUS    cusparseStatus_t
#define LIBRARY_HANDLE    cusparseHandle_t
#define LIBRARY_GET       cusparse_get
#define LIBRARY_OK        CUSPARSE_STATUS_SUCCESS
#define LIBRARY_NO_HANDLE CUSPARSE_STATUS_NOT_INITIALIZED

LIBRARY_STREAM(cusparseSetStream, cusparseGetStream)
LIBRARY_FIELD(cusparseSetPointerMode, cusparseGetPointerMode,
              cusparsePointerMode_t, pointer_mode)

cusparseStatus_t cusparseGetVersion(cusparseHandle_t handle, int *value)
{
    (void)handle;
    *value = version[0] * 1000 + version[1] * 100 + version[2];
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseGetProperty(libraryPropertyType type, int *value)
{
    if ((unsigned)type > PATCH_LEVEL)
        return CUSPARSE_STATUS_INVALID_VALUE;
    *value = version[type];
    return CUSPARSE_STATUS_SUCCESS;
}

#define S(name) [CUSPARSE_STATUS_##name] = "CUSPARSE_STATUS_" #name
static const char *const status_names[] = {
    S(SUCCESS),          S(NOT_INITIALIZED),
    S(ALLOC_FAILED),     S(INVALID_VALUE),
    S(ARCH_MISMATCH),    S(MAPPING_ERROR),
    S(EXECUTION_FAILED), S(INTERNAL_ERROR),
    S(ZERO_PIVOT),       S(MATRIX_TYPE_NOT_SUPPORTED),
    S(NOT_SUPPORTED),    S(INSUFFICIENT_RESOURCES),
};
#undef S

const char *cusparseGetErrorName(cusparseStatus_t status)
{
    return (size_t)status < sizeof status_names / sizeof *status_names
               ? status_names[status]
               : "unrecognized error code";
}

const char *cusparseGetErrorString(cusparseStatus_t status)
{
    return cusparseGetErrorName(status);
}

static void *object_new(size_t bytes)
{
    return memsim_handle_new(HANDLE_DESCRIPTOR, bytes);
}

static void *object_get(const void *object)
{
    return memsim_handle_get(HANDLE_DESCRIPTOR, object);
}

/* Ends what a descriptor or an info object points to; NULL is nothing. */
static cusparseStatus_t object_free(const void *object)
{
    return object && memsim_handle_free(HANDLE_DESCRIPTOR, (void *)object)
               ? CUSPARSE_STATUS_INVALID_VALUE
               : CUSPARSE_STATUS_SUCCESS;
}

#define OBJECT(create, destroy, T, bytes)                                      \
    cusparseStatus_t create(T *object)                                         \
    {                                                                          \
        *object = object_new(bytes);                                           \
        return *object ? CUSPARSE_STATUS_SUCCESS                               \
                       : CUSPARSE_STATUS_ALLOC_FAILED;                         \
    }                                                                          \
    cusparseStatus_t destroy(T object)                                         \
    {                                                                          \
        return object_free(object);                                            \
    }

OBJECT(cusparseCreateMatDescr, cusparseDestroyMatDescr, cusparseMatDescr_t,
       sizeof(struct old_matrix))
OBJECT(cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info, bsrsv2Info_t, 8)
OBJECT(cusparseCreateBsrsm2Info, cusparseDestroyBsrsm2Info, bsrsm2Info_t, 8)
OBJECT(cusparseSpSV_createDescr, cusparseSpSV_destroyDescr, cusparseSpSVDescr_t,
       8)
OBJECT(cusparseSpSM_createDescr, cusparseSpSM_destroyDescr, cusparseSpSMDescr_t,
       8)
OBJECT(cusparseSpGEMM_createDescr, cusparseSpGEMM_destroyDescr,
       cusparseSpGEMMDescr_t, 8)

#define OLD_FIELD(Name, T, field)                                              \
    cusparseStatus_t cusparseSet##Name(cusparseMatDescr_t matrix, T value)     \
    {                                                                          \
        struct old_matrix *m = object_get(matrix);                             \
                                                                               \
        if (!m)                                                                \
            return CUSPARSE_STATUS_INVALID_VALUE;                              \
        m->field = value;                                                      \
        return CUSPARSE_STATUS_SUCCESS;                                        \
    }                                                                          \
    T cusparseGet##Name(const cusparseMatDescr_t matrix)                       \
    {                                                                          \
        const struct old_matrix *m = object_get(matrix);                       \
                                                                               \
        return m ? m->field : (T)0;                                            \
    }

OLD_FIELD(MatType, cusparseMatrixType_t, type)
OLD_FIELD(MatFillMode, cusparseFillMode_t, fill)
OLD_FIELD(MatDiagType, cusparseDiagType_t, diagonal)
OLD_FIELD(MatIndexBase, cusparseIndexBase_t, base)
