/* SPDX-License-Identifier: Apache-2.0
 * Transforms: recorded with their rank, sizes, batch and direction. The upper
 * half of the rank's word has the type of execution, one more than its number,
 * and a bit above 16 for real input or output. */
#include "capture/cufft/cufft_fake.h"

#include "capture/core/work/library_call.h"
#include "capture/core/run/record.h"

static cufftResult execute_plan(cufftHandle handle, uint32_t name,
                                int direction)
{
    const struct plan *plan = plan_get(handle);

    if (!plan || !plan->shape.rank)
        return CUFFT_INVALID_PLAN;
    const struct fft_shape *s = &plan->shape;
    const struct call call = {
        .name = name,
        .stream = plan->stream,
        .workspace_bytes = plan->work_bytes,
        .values = {(uint64_t)s->rank |
                       (1 + (uint64_t)s->type + ((uint64_t)s->real << 16))
                           << 32,
                   (uint64_t)s->n[0], (uint64_t)s->n[1],
                   (uint64_t)s->n[2], (uint64_t)s->batch,
                   (uint64_t)(int64_t)direction},
    };
    return memsim_call(&call) ? CUFFT_EXEC_FAILED : CUFFT_SUCCESS;
}

#define BOTH_WAYS(name, In, Out)                                               \
    cufftResult name(cufftHandle handle, In *in, Out *out, int direction)      \
    {                                                                          \
        (void)in;                                                              \
        (void)out;                                                             \
        return execute_plan(handle, NAME_OF(#name), direction);                \
    }
#define ONE_WAY(name, In, Out, direction)                                      \
    cufftResult name(cufftHandle handle, In *in, Out *out)                     \
    {                                                                          \
        (void)in;                                                              \
        (void)out;                                                             \
        return execute_plan(handle, NAME_OF(#name), direction);                \
    }

BOTH_WAYS(cufftXtExec, void, void)
BOTH_WAYS(cufftExecC2C, cufftComplex, cufftComplex)
BOTH_WAYS(cufftExecZ2Z, cufftDoubleComplex, cufftDoubleComplex)
ONE_WAY(cufftExecR2C, cufftReal, cufftComplex, CUFFT_FORWARD)
ONE_WAY(cufftExecD2Z, cufftDoubleReal, cufftDoubleComplex, CUFFT_FORWARD)
ONE_WAY(cufftExecC2R, cufftComplex, cufftReal, CUFFT_INVERSE)
ONE_WAY(cufftExecZ2D, cufftDoubleComplex, cufftDoubleReal, CUFFT_INVERSE)
