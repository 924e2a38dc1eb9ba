/* SPDX-License-Identifier: Apache-2.0
 * What workspaces cuSOLVER asks for. Its documentation gives no formula. Where
 * an H200 (CUDA 13.0) was asked, its answers are below, and the parts of a row
 * that follow from them. All else is LAPACK's, for the same operations with the
 * same arguments: the "optimal" LWORK of each routine's comment, where the
 * block size is the one of LAPACK's ilaenv.f (SRC/ilaenv.f, ISPEC = 1): 64 for
 * GETRF, POTRF, SYTRF and TRTRI, 32 for GEQRF, ORGQR, ORMQR, GEBRD and GEHRD.
 * cuSOLVER's own were 15 to 246 times that in six of the eight cases: most of
 * it does not grow with the matrix, and is below 7 MB. A row marked "model" has
 * no counterpart in LAPACK. */
#include "capture/cusolver/cusolver.h"

#include "capture/core/work/library_call.h"

/* Elements of one matrix: the sum of these, each times what it is called. */
static const struct rule {
    int32_t one, m, n, nn;
} rules[SOLVER_OPS] = {
    /* model: LAPACK works in place; one block of columns */
    [SOLVER_POTRF] = {.n = 64},
    [SOLVER_POTRI] = {.n = 64},
    [SOLVER_TRTRI] = {.n = 64},
    [SOLVER_GETRF] = {.m = 64},
    /* one is an H200's for 300x100; xORGQR: N * NB; xORMQR: NW * NB, and NW is
     * passed as n */
    [SOLVER_GEQRF] = {.one = 786432},
    [SOLVER_ORGQR] = {.n = 32},
    [SOLVER_ORMQR] = {.n = 32},
    /* xSYTRF: N * NB; xSYTRS2: N */
    [SOLVER_SYTRF] = {.n = 64},
    [SOLVER_SYTRS] = {.n = 1},
    /* xSYEVD: 2 N + 1 for values, 1 + 6 N + 2 N^2 with vectors, of which an
     * H200 shows the last term and `one` at N = 50 */
    [SOLVER_SYEVD_VALUES] = {.one = 1, .n = 2},
    [SOLVER_SYEVD] = {.one = 106499, .nn = 2},
    /* model: Jacobi keeps the rotations and a copy */
    [SOLVER_SYEVJ] = {.n = 2, .nn = 2},
    [SOLVER_SYEVJ_BATCHED] = {.n = 2, .nn = 1},
    /* xGEEV: 2 N + N * NB of xGEHRD, and a copy for the vectors */
    [SOLVER_GEEV] = {.n = 34, .nn = 1},
    /* xGESVD: 3 N + (M + N) * NB of xGEBRD, for M >= N, beside xGEQRF's */
    [SOLVER_GESVD] = {.one = 786432, .m = 32, .n = 35},
    /* xGEJSV with both vectors: 6 N + 2 N^2, and 2 M + N */
    [SOLVER_GESVDJ] = {.m = 2, .n = 7, .nn = 2},
    /* xGESVJ: M + N; matrices of at most 32 x 32 fit shared memory */
    [SOLVER_GESVDJ_BATCHED] = {.m = 1, .n = 1},
    /* model: A^H A, which is small for a tall matrix, and xSYEVD of it */
    [SOLVER_GESVDA] = {.one = 1, .n = 6, .nn = 3},
};

/* What an H200 asked for. */
static const struct point {
    enum solver_op op;
    struct solver_shape shape;
    int64_t elements;
} points[] = {
    {SOLVER_GEQRF, {CUDA_R_32F, .m = 300, .n = 100}, 786432},
    {SOLVER_SYEVD, {CUDA_R_32F, .n = 50}, 111499},
    {SOLVER_ORGQR, {CUDA_C_64F, .m = 300, .n = 100, .k = 50}, 48032},
    {SOLVER_ORMQR, {CUDA_R_64F, .n = 70, .k = 20}, 85632},
    {SOLVER_GESVD, {CUDA_R_64F, .m = 80, .n = 40}, 829152},
    {SOLVER_SYEVJ_BATCHED, {CUDA_R_32F, .n = 8, .batch = 10}, 12078},
    /* of cusolverDnXpotrf: 4,224 bytes, whatever the type */
    {SOLVER_POTRF, {CUDA_R_32F, .n = 1000}, 1056},
    {SOLVER_POTRF, {CUDA_C_64F, .n = 1000}, 264},
};

static const struct point *point_find(enum solver_op op,
                                      const struct solver_shape *s)
{
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        const struct solver_shape *p = &points[i].shape;

        if (points[i].op == op && p->type == s->type && p->m == s->m &&
            p->n == s->n && p->k == s->k && p->batch == s->batch)
            return &points[i];
    }
    return NULL;
}

static uint64_t type_bytes(cudaDataType type)
{
    switch (type) {
    case CUDA_R_32F:
        return 4;
    case CUDA_R_64F:
    case CUDA_C_32F:
        return 8;
    case CUDA_C_64F:
        return 16;
    default:
        return 0;
    }
}

/* An answer of ELEMENTS that nobody measured is from 0 to four times as much
 * and 8 MiB: the H200's are at most 6.6 MB above LAPACK's, and less for
 * xPOTRF. */
static void size_tell(const struct cusolver *c, enum solver_op op,
                      const struct solver_shape *s, int64_t elements)
{
    uint64_t bytes = (uint64_t)elements * type_bytes(s->type);

    if (!point_find(op, s))
        memsim_call_size(c->device, bytes, 0, 4 * bytes + (8 << 20));
}

int64_t solver_workspace(enum solver_op op, const struct solver_shape *s)
{
    const struct point *point = point_find(op, s);
    const struct rule *r = &rules[op];

    if (point)
        return point->elements;
    int64_t batch = s->batch > 1 ? s->batch : 1;

    return batch * (r->one + r->m * (s->m ? s->m : s->n) + r->n * s->n +
                    r->nn * s->n * s->n);
}

static int shape_is_bad(const struct solver_shape *s)
{
    int64_t rows = s->m ? s->m : s->n;

    return s->m < 0 || s->n < 0 || s->k < 0 || s->batch < 0 ||
           (s->lda && s->lda < (rows > 1 ? rows : 1));
}

cusolverStatus_t solver_size(cusolverDnHandle_t handle, enum solver_op op,
                             const struct solver_shape *shape, int *elements)
{
    const struct cusolver *c = cusolver_get(handle);

    if (!c)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (shape_is_bad(shape) || !elements)
        return CUSOLVER_STATUS_INVALID_VALUE;
    int64_t wanted = solver_workspace(op, shape);
    if (wanted > INT32_MAX)
        return CUSOLVER_STATUS_INVALID_VALUE;
    *elements = (int)wanted;
    size_tell(c, op, shape, wanted);
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t solver_size_bytes(cusolverDnHandle_t handle,
                                   enum solver_op op,
                                   const struct solver_shape *shape,
                                   size_t *device_bytes, size_t *host_bytes)
{
    const struct cusolver *c = cusolver_get(handle);
    uint64_t unit = type_bytes(shape->type);

    if (!c)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (shape_is_bad(shape) || !unit || !device_bytes || !host_bytes)
        return CUSOLVER_STATUS_INVALID_VALUE;
    int64_t wanted = solver_workspace(op, shape);
    *device_bytes = unit * (uint64_t)wanted;
    *host_bytes = 0;
    size_tell(c, op, shape, wanted);
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t solver_run(cusolverDnHandle_t handle, uint32_t name,
                            const struct solver_shape *shape,
                            uint64_t workspace_bytes, int *info,
                            int64_t info_count)
{
    const struct cusolver *c = cusolver_get(handle);

    if (!c)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (shape_is_bad(shape))
        return CUSOLVER_STATUS_INVALID_VALUE;
    const struct call call = {
        .name = name,
        .stream = c->stream,
        .workspace_bytes = workspace_bytes,
        .values = {(uint64_t)(shape->m ? shape->m : shape->n),
                   (uint64_t)shape->n, (uint64_t)shape->k,
                   (uint64_t)shape->batch, (uint64_t)shape->type},
    };
    if (memsim_call(&call))
        return CUSOLVER_STATUS_EXECUTION_FAILED;
    memsim_call_result(info, (uint64_t)info_count * sizeof *info);
    return CUSOLVER_STATUS_SUCCESS;
}
