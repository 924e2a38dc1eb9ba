/* SPDX-License-Identifier: Apache-2.0
 * The many ways to describe a transform, each with its plan, its size and its
 * estimate. Strides and embeddings change nothing that is modelled. */
#include "capture/cufft/cufft_fake.h"

/* See above. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define API cufftResult

static cudaDataType execution_type(cufftType type)
{
    return type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D
               ? CUDA_C_64F
               : CUDA_C_32F;
}

static bool is_real(cufftType type)
{
    return type != CUFFT_C2C && type != CUFFT_Z2Z;
}

static bool is_complex(cudaDataType type)
{
    return type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_16F ||
           type == CUDA_C_16BF;
}

/* With as many sizes as fit; a RANK beyond them is told later. */
static struct fft_shape shape_wide(cudaDataType type, int64_t batch, int rank,
                                   const long long *n)
{
    struct fft_shape shape = {.rank = rank, .batch = batch, .type = type};

    for (int i = 0; n && i < rank && i < RANK_MAX; i++)
        shape.n[i] = n[i];
    return shape;
}

static struct fft_shape shape_of(cufftType type, int64_t batch, int rank,
                                 const int *n)
{
    long long wide[RANK_MAX] = {0};

    for (int i = 0; n && i < rank && i < RANK_MAX; i++)
        wide[i] = n[i];
    struct fft_shape shape =
        shape_wide(execution_type(type), batch, rank, wide);
    shape.real = is_real(type);
    return shape;
}

static API size_answer(const struct fft_shape *shape, size_t *bytes)
{
    uint64_t wanted = 0;
    API result = shape_work(shape, &wanted);

    if (!bytes)
        return CUFFT_INVALID_VALUE;
    if (!result)
        *bytes = wanted;
    return result;
}

/* A plan made in one step: without its area there is none. */
static API plan_new(cufftHandle *handle, const struct fft_shape *shape)
{
    API result = cufftCreate(handle);

    if (result)
        return result;
    result = plan_make(plan_get(*handle), shape, NULL);
    if (result)
        cufftDestroy(*handle);
    return result;
}

#define MADE(suffix, ARGUMENTS, shape_)                                        \
    API cufftMakePlan##suffix(cufftHandle handle, ARGUMENTS, size_t *bytes)    \
    {                                                                          \
        const struct fft_shape shape = shape_;                                 \
                                                                               \
        return plan_make(plan_get(handle), &shape, bytes);                     \
    }                                                                          \
    API cufftGetSize##suffix(cufftHandle handle, ARGUMENTS, size_t *bytes)     \
    {                                                                          \
        const struct fft_shape shape = shape_;                                 \
                                                                               \
        return plan_get(handle) ? size_answer(&shape, bytes)                   \
                                : CUFFT_INVALID_PLAN;                          \
    }
#define ALONE(suffix, ARGUMENTS, shape_)                                       \
    API cufftPlan##suffix(cufftHandle *handle, ARGUMENTS)                      \
    {                                                                          \
        const struct fft_shape shape = shape_;                                 \
                                                                               \
        return plan_new(handle, &shape);                                       \
    }                                                                          \
    API cufftEstimate##suffix(ARGUMENTS, size_t *bytes)                        \
    {                                                                          \
        const struct fft_shape shape = shape_;                                 \
                                                                               \
        return size_answer(&shape, bytes);                                     \
    }

#define LINE  int nx, cufftType type, int batch
#define PLANE int nx, int ny, cufftType type
#define SPACE int nx, int ny, int nz, cufftType type
#define MANY                                                                   \
    int rank, int *n, int *in_embed, int in_stride, int in_distance,           \
        int *out_embed, int out_stride, int out_distance, cufftType type,      \
        int batch
#define MANY_64                                                                \
    int rank, long long *n, long long *in_embed, long long in_stride,          \
        long long in_distance, long long *out_embed, long long out_stride,     \
        long long out_distance, cufftType type, long long batch

MADE(1d, LINE, shape_of(type, batch, 1, (int[]){nx}))
ALONE(1d, LINE, shape_of(type, batch, 1, (int[]){nx}))
MADE(2d, PLANE, shape_of(type, 1, 2, ((int[]){nx, ny})))
ALONE(2d, PLANE, shape_of(type, 1, 2, ((int[]){nx, ny})))
MADE(3d, SPACE, shape_of(type, 1, 3, ((int[]){nx, ny, nz})))
ALONE(3d, SPACE, shape_of(type, 1, 3, ((int[]){nx, ny, nz})))
MADE(Many, MANY, shape_of(type, batch, rank, n))
ALONE(Many, MANY, shape_of(type, batch, rank, n))
MADE(Many64, MANY_64, shape_wide(execution_type(type), batch, rank, n))

#define XT                                                                     \
    cufftHandle handle, int rank, long long *n, long long *in_embed,           \
        long long in_stride, long long in_distance, cudaDataType in_type,      \
        long long *out_embed, long long out_stride, long long out_distance,    \
        cudaDataType out_type, long long batch, size_t *bytes,                 \
        cudaDataType type

API cufftXtMakePlanMany(XT)
{
    struct fft_shape shape = shape_wide(type, batch, rank, n);

    shape.real = !is_complex(in_type) || !is_complex(out_type);
    return plan_make(plan_get(handle), &shape, bytes);
}

API cufftXtGetSizeMany(XT)
{
    const struct fft_shape shape = shape_wide(type, batch, rank, n);

    return plan_get(handle) ? size_answer(&shape, bytes) : CUFFT_INVALID_PLAN;
}

API cufftGetSize(cufftHandle handle, size_t *bytes)
{
    const struct plan *plan = plan_get(handle);

    if (!plan)
        return CUFFT_INVALID_PLAN;
    *bytes = plan->work_bytes;
    return CUFFT_SUCCESS;
}
