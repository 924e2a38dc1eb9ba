/* SPDX-License-Identifier: Apache-2.0
 * Making descriptors, and their attributes: where each lies, and its size,
 * which a caller has to get right (cuBLAS documentation, ...SetAttribute). */
#include "capture/cublaslt/cublaslt_fake.h"

#include <stddef.h>
#include <string.h>

#include "capture/core/base/handle.h"

#define API cublasStatus_t
#define BAD CUBLAS_STATUS_INVALID_VALUE

struct place {
    uint16_t offset, bytes; /* 0 bytes: no such attribute */
};

#define AT(T, field)                                                           \
    {                                                                          \
        offsetof(struct lt_##T, field), sizeof(((struct lt_##T *)0)->field)    \
    }
#define COUNT(table) (sizeof table / sizeof *table)

#define L(name) [CUBLASLT_MATRIX_LAYOUT_##name]
static const struct place layout_places[] = {
    L(TYPE) = AT(layout, type),
    L(ORDER) = AT(layout, order),
    L(ROWS) = AT(layout, rows),
    L(COLS) = AT(layout, columns),
    L(LD) = AT(layout, leading),
    L(BATCH_COUNT) = AT(layout, batch),
    L(STRIDED_BATCH_OFFSET) = AT(layout, batch_stride),
    L(PLANE_OFFSET) = AT(layout, plane_offset),
    L(BATCH_MODE) = AT(layout, batch_mode),
};
#undef L

/* 27 to 30 were for chunks that start as they arrive, until CUDA 12.8. */
#define D(name) [CUBLASLT_MATMUL_DESC_##name]
static const struct place product_places[] = {
    D(COMPUTE_TYPE) = AT(product, compute),
    D(SCALE_TYPE) = AT(product, scale),
    D(POINTER_MODE) = AT(product, pointer_mode),
    D(TRANSA) = AT(product, transpose[0]),
    D(TRANSB) = AT(product, transpose[1]),
    D(TRANSC) = AT(product, transpose[2]),
    D(FILL_MODE) = AT(product, fill),
    D(EPILOGUE) = AT(product, epilogue),
    D(BIAS_POINTER) = AT(product, bias),
    D(BIAS_BATCH_STRIDE) = AT(product, bias_stride),
    D(EPILOGUE_AUX_POINTER) = AT(product, auxiliary),
    D(EPILOGUE_AUX_LD) = AT(product, auxiliary_leading),
    D(EPILOGUE_AUX_BATCH_STRIDE) = AT(product, auxiliary_stride),
    D(ALPHA_VECTOR_BATCH_STRIDE) = AT(product, alpha_stride),
    D(SM_COUNT_TARGET) = AT(product, sm_target),
    D(A_SCALE_POINTER) = AT(product, scales[0]),
    D(B_SCALE_POINTER) = AT(product, scales[1]),
    D(C_SCALE_POINTER) = AT(product, scales[2]),
    D(D_SCALE_POINTER) = AT(product, scales[3]),
    D(AMAX_D_POINTER) = AT(product, maximum),
    D(EPILOGUE_AUX_DATA_TYPE) = AT(product, auxiliary_type),
    D(EPILOGUE_AUX_SCALE_POINTER) = AT(product, auxiliary_scale),
    D(EPILOGUE_AUX_AMAX_POINTER) = AT(product, auxiliary_maximum),
    D(FAST_ACCUM) = AT(product, fast_accumulation),
    D(BIAS_DATA_TYPE) = AT(product, bias_type),
    [27] = AT(product, chunks[0]),
    [28] = AT(product, chunks[1]),
    [29] = AT(product, counters[0]),
    [30] = AT(product, counters[1]),
    D(A_SCALE_MODE) = AT(product, scale_modes[0]),
    D(B_SCALE_MODE) = AT(product, scale_modes[1]),
    D(C_SCALE_MODE) = AT(product, scale_modes[2]),
    D(D_SCALE_MODE) = AT(product, scale_modes[3]),
    D(EPILOGUE_AUX_SCALE_MODE) = AT(product, scale_modes[4]),
    D(D_OUT_SCALE_POINTER) = AT(product, output_scale),
    D(D_OUT_SCALE_MODE) = AT(product, output_scale_mode),
    D(EMULATION_DESCRIPTOR) = AT(product, emulation),
};
#undef D

#define T(name) [CUBLASLT_MATRIX_TRANSFORM_DESC_##name]
static const struct place transform_places[] = {
    T(SCALE_TYPE) = AT(transform, scale),
    T(POINTER_MODE) = AT(transform, pointer_mode),
    T(TRANSA) = AT(transform, transpose[0]),
    T(TRANSB) = AT(transform, transpose[1]),
};
#undef T

/* 2, 10 and 11 were masks of modes, until CUDA 12. */
#define P(name) [CUBLASLT_MATMUL_PREF_##name]
static const struct place preference_places[] = {
    P(SEARCH_MODE) = AT(preference, search),
    P(MAX_WORKSPACE_BYTES) = AT(preference, workspace_bytes),
    [2] = AT(preference, math_modes),
    P(REDUCTION_SCHEME_MASK) = AT(preference, reductions),
    P(MIN_ALIGNMENT_A_BYTES) = AT(preference, alignment[0]),
    P(MIN_ALIGNMENT_B_BYTES) = AT(preference, alignment[1]),
    P(MIN_ALIGNMENT_C_BYTES) = AT(preference, alignment[2]),
    P(MIN_ALIGNMENT_D_BYTES) = AT(preference, alignment[3]),
    P(MAX_WAVES_COUNT) = AT(preference, waves),
    [10] = AT(preference, pointer_modes),
    [11] = AT(preference, epilogues),
    P(IMPL_MASK) = AT(preference, implementations),
};
#undef P

void *lt_get(const void *descriptor, enum lt_kind kind)
{
    uint32_t found = 0;

    if (descriptor)
        memcpy(&found, descriptor, sizeof found);
    return found == (uint32_t)kind ? (void *)descriptor : NULL;
}

/* A whole descriptor, to be written where the program keeps it. */
struct fresh {
    const void *value;
    size_t bytes;
};

static API init_descriptor(void *descriptor, size_t room, struct fresh fresh)
{
    if (!descriptor || room < fresh.bytes)
        return BAD;
    memset(descriptor, 0, room);
    memcpy(descriptor, fresh.value, fresh.bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* DESCRIPTOR, of any of the pointer types, points to a new one. */
static API create_descriptor(void *descriptor, size_t room, struct fresh fresh)
{
    void *made = memsim_handle_new(HANDLE_DESCRIPTOR, room);

    if (!made)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(descriptor, &made, sizeof made);
    return init_descriptor(made, room, fresh);
}

static API destroy_descriptor(void *descriptor, enum lt_kind kind)
{
    if (!descriptor)
        return CUBLAS_STATUS_SUCCESS;
    if (!memsim_handle_get(HANDLE_DESCRIPTOR, descriptor) ||
        !lt_get(descriptor, kind))
        return BAD;
    memset(descriptor, 0, sizeof(uint32_t));
    memsim_handle_free(HANDLE_DESCRIPTOR, descriptor);
    return CUBLAS_STATUS_SUCCESS;
}

static API place_set(void *ours, const struct place *place, const void *value,
                     size_t bytes)
{
    if (!ours || !value || !place || !place->bytes || bytes != place->bytes)
        return BAD;
    memcpy((char *)ours + place->offset, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* Without room for it, *WRITTEN says how much the value takes. */
static API place_get(const void *ours, const struct place *place, void *value,
                     size_t bytes, size_t *written)
{
    if (!ours || !place || !place->bytes || (!bytes && !written))
        return BAD;
    if (written)
        *written = place->bytes;
    if (!bytes)
        return CUBLAS_STATUS_SUCCESS;
    if (!value || bytes != place->bytes)
        return BAD;
    memcpy(value, (const char *)ours + place->offset, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define KIND(Name, kind, places, A)                                            \
    API cublasLt##Name##Destroy(cublasLt##Name##_t descriptor)                 \
    {                                                                          \
        return destroy_descriptor(descriptor, kind);                           \
    }                                                                          \
    API cublasLt##Name##SetAttribute(cublasLt##Name##_t descriptor,            \
                                     A attribute, const void *value,           \
                                     size_t bytes)                             \
    {                                                                          \
        return place_set(                                                      \
            lt_get(descriptor, kind),                                          \
            (size_t)attribute < COUNT(places) ? &places[attribute] : NULL,     \
            value, bytes);                                                     \
    }                                                                          \
    API cublasLt##Name##GetAttribute(cublasLt##Name##_t descriptor,            \
                                     A attribute, void *value, size_t bytes,   \
                                     size_t *written)                          \
    {                                                                          \
        return place_get(                                                      \
            lt_get(descriptor, kind),                                          \
            (size_t)attribute < COUNT(places) ? &places[attribute] : NULL,     \
            value, bytes, written);                                            \
    }

KIND(MatrixLayout, LT_LAYOUT, layout_places, cublasLtMatrixLayoutAttribute_t)
KIND(MatmulDesc, LT_PRODUCT, product_places, cublasLtMatmulDescAttributes_t)
KIND(MatrixTransformDesc, LT_TRANSFORM, transform_places,
     cublasLtMatrixTransformDescAttributes_t)
KIND(MatmulPreference, LT_PREFERENCE, preference_places,
     cublasLtMatmulPreferenceAttributes_t)

#define FRESH(T, ...)                                                          \
    (struct fresh)                                                             \
    {                                                                          \
        &(const struct lt_##T){__VA_ARGS__}, sizeof(struct lt_##T)             \
    }
#define FITS(T, Opaque)                                                        \
    _Static_assert(sizeof(struct lt_##T) <= sizeof(Opaque),                    \
                   "our state fits the declared words")

FITS(layout, cublasLtMatrixLayoutOpaque_t);
FITS(product, cublasLtMatmulDescOpaque_t);
FITS(transform, cublasLtMatrixTransformDescOpaque_t);
FITS(preference, cublasLtMatmulPreferenceOpaque_t);

#define LAYOUT                                                                 \
    FRESH(layout, LT_LAYOUT, .type = (int32_t)type,                            \
          .order = CUBLASLT_ORDER_COL, .batch = 1, .rows = (int64_t)rows,      \
          .columns = (int64_t)columns, .leading = leading)

API cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                               cudaDataType type, uint64_t rows,
                               uint64_t columns, int64_t leading)
{
    return create_descriptor(layout, sizeof **layout, LAYOUT);
}

API cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout,
                                      size_t room, cudaDataType type,
                                      uint64_t rows, uint64_t columns,
                                      int64_t leading)
{
    return init_descriptor(layout, room, LAYOUT);
}

#define PRODUCT                                                                \
    FRESH(product, LT_PRODUCT, .compute = (int32_t)compute,                    \
          .scale = (int32_t)scale, .fill = CUBLAS_FILL_MODE_FULL,              \
          .epilogue = CUBLASLT_EPILOGUE_DEFAULT, .bias_type = -1,              \
          .auxiliary_type = -1)

API cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product,
                             cublasComputeType_t compute, cudaDataType_t scale)
{
    return create_descriptor(product, sizeof **product, PRODUCT);
}

API cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t product, size_t room,
                                    cublasComputeType_t compute,
                                    cudaDataType_t scale)
{
    return init_descriptor(product, room, PRODUCT);
}

API cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *transform,
                                      cudaDataType scale)
{
    return create_descriptor(
        transform, sizeof **transform,
        FRESH(transform, LT_TRANSFORM, .scale = (int32_t)scale));
}

API cublasLtMatrixTransformDescInit_internal(
    cublasLtMatrixTransformDesc_t transform, size_t room, cudaDataType scale)
{
    return init_descriptor(
        transform, room,
        FRESH(transform, LT_TRANSFORM, .scale = (int32_t)scale));
}

#define PREFERENCE                                                             \
    FRESH(preference, LT_PREFERENCE,                                           \
          .reductions = CUBLASLT_REDUCTION_SCHEME_MASK,                        \
          .alignment = {256, 256, 256, 256}, .implementations = UINT64_MAX)

API cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return create_descriptor(preference, sizeof **preference, PREFERENCE);
}

API cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                          size_t room)
{
    return init_descriptor(preference, room, PREFERENCE);
}
