/* SPDX-License-Identifier: Apache-2.0
 * cuFFT: plans, their work areas on the card, what an execution records. */
#include <cuda_runtime_api.h>
#include <cufft.h>

#include "check.h"
#include "cudnn_trace.h"

static size_t card_used(void)
{
    size_t free_bytes = 0, total_bytes = 0;

    CHECK(!cudaMemGetInfo(&free_bytes, &total_bytes));
    return total_bytes - free_bytes;
}

TEST(a_plan_takes_its_work_area_and_gives_it_back)
{
    cufftHandle plan;
    size_t bytes = 0;

    CHECK(!cudaFree(NULL));
    CHECK(!cufftCreate(&plan));
    size_t before = card_used();
    CHECK(!cufftMakePlan1d(plan, 1 << 20, CUFFT_C2C, 4, &bytes));
    CHECK_UINT(bytes, (UINT64_C(4) << 20) * 8); /* a product of 2: the least */
    CHECK(card_used() >= before + bytes);
    CHECK(cufftMakePlan1d(plan, 11 << 10, CUFFT_C2C, 1, &bytes));
    CHECK(!cufftEstimate1d(11 << 10, CUFFT_C2C, 1, &bytes));
    CHECK_UINT(bytes, (UINT64_C(11) << 10) * 8 * 8); /* 11: the most */
    CHECK(!cufftDestroy(plan));
    CHECK_UINT(card_used(), before);
    CHECK_CODE(cufftDestroy(plan), CUFFT_INVALID_PLAN);
}

TEST(each_plan_takes_memory_beside_its_work_area)
{
    cufftHandle plans[3];

    CHECK(!cudaFree(NULL));
    size_t before = card_used();
    for (int i = 0; i < 3; i++) {
        CHECK(!cufftCreate(&plans[i]));
        CHECK(!cufftSetAutoAllocation(plans[i], 0));
    }
    CHECK_UINT(card_used(), before + (8 << 20) + 3 * 517000);
    CHECK(!cufftDestroy(plans[1]));
    CHECK(!cufftCreate(&plans[1])); /* takes what the last one left */
    CHECK_UINT(card_used(), before + (8 << 20) + 3 * 517000);
}

TEST(an_execution_is_recorded)
{
    cufftHandle plan;
    cufftComplex *data;

    CHECK(!cudaMalloc((void **)&data, 1 << 20));
    CHECK(!cufftPlan2d(&plan, 64, 128, CUFFT_C2C));
    CHECK(!cufftExecC2C(plan, data, data, CUFFT_INVERSE));
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK(seen.count == 1);
    CHECK_UINT(seen.call.workspace_bytes, 64 * 128 * 8);
    CHECK_UINT(seen.call.a & UINT32_MAX, 2);
    CHECK_UINT(seen.call.a >> 32, 5); /* 1 + CUDA_C_32F, complex both ways */
    CHECK_UINT(seen.call.b, 64);
    CHECK_UINT(seen.call.c, 128);
    CHECK_UINT(seen.call.f, (uint64_t)(int64_t)CUFFT_INVERSE);
    CHECK(cufftExecC2C(plan + 1, data, data, CUFFT_FORWARD) != CUFFT_SUCCESS);
}

TEST(sizes_that_cannot_be_are_refused)
{
    cufftHandle plan;

    CHECK(cufftPlan1d(&plan, 0, CUFFT_C2C, 1) != CUFFT_SUCCESS);
    CHECK(cufftPlan1d(&plan, 8, CUFFT_C2C, 0) != CUFFT_SUCCESS);
}
