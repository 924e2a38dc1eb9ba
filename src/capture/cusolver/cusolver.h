/* SPDX-License-Identifier: Apache-2.0
 * What cuSOLVER's files share. */
#ifndef MEMSIM_CAPTURE_CUSOLVER_CUSOLVER_H
#define MEMSIM_CAPTURE_CUSOLVER_CUSOLVER_H

#include <cusolverDn.h>
#include <stdint.h>

/* What a cusolverDnHandle_t points to. */
struct cusolver {
    int device;
    uint64_t stream;
    cusolverDeterministicMode_t deterministic;
    cusolverMathMode_t math;
    cudaEmulationStrategy_t emulation;
};

/* The factorisations that want a workspace: rows of workspace.c. */
enum solver_op {
    SOLVER_POTRF,
    SOLVER_POTRI,
    SOLVER_TRTRI,
    SOLVER_GETRF,
    SOLVER_GEQRF,
    SOLVER_ORGQR,
    SOLVER_ORMQR,
    SOLVER_SYTRF,
    SOLVER_SYTRS,
    SOLVER_SYEVD_VALUES, /* without vectors */
    SOLVER_SYEVD,
    SOLVER_SYEVJ,
    SOLVER_SYEVJ_BATCHED,
    SOLVER_GEEV,
    SOLVER_GESVD,
    SOLVER_GESVDJ,
    SOLVER_GESVDJ_BATCHED,
    SOLVER_GESVDA,
    SOLVER_OPS,
};

/* A problem: an m by n matrix, or n by n where m is 0 (as many as BATCH says),
 * with K reflectors or right-hand sides. LDA is checked where it is not 0. */
struct solver_shape {
    cudaDataType type;
    int64_t m, n, k, batch, lda;
};

/* HANDLE's, or NULL where it is not a live one. */
struct cusolver *cusolver_get(cusolverDnHandle_t handle);

/* Elements of workspace that OP takes, not counting the batch's limits. */
int64_t solver_workspace(enum solver_op op, const struct solver_shape *shape);

/* A ..._bufferSize function: elements in an int, or bytes on both sides. */
cusolverStatus_t solver_size(cusolverDnHandle_t handle, enum solver_op op,
                             const struct solver_shape *shape, int *elements);
cusolverStatus_t solver_size_bytes(cusolverDnHandle_t handle,
                                   enum solver_op op,
                                   const struct solver_shape *shape,
                                   size_t *device_bytes, size_t *host_bytes);

/* The work itself: recorded under NAME, with INFO_COUNT codes of success. */
cusolverStatus_t solver_run(cusolverDnHandle_t handle, uint32_t name,
                            const struct solver_shape *shape,
                            uint64_t workspace_bytes, int *info,
                            int64_t info_count);

#endif
