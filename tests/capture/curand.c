/* SPDX-License-Identifier: Apache-2.0
 * cuRAND: generators, what a request records, numbers of the host. */
#include <cuda_runtime_api.h>
#include <curand.h>

#include "check.h"
#include "cudnn_trace.h"

TEST(a_request_is_recorded_with_its_count)
{
    curandGenerator_t g;
    cudaStream_t stream;
    float *numbers;

    CHECK(!cudaMalloc((void **)&numbers, 4000));
    CHECK(!cudaStreamCreate(&stream));
    CHECK(!curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    CHECK(!curandSetPseudoRandomGeneratorSeed(g, 7));
    CHECK(!curandSetStream(g, stream));
    CHECK(!curandGenerateNormal(g, numbers, 1000, 0, 1));
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK(seen.count == 1);
    CHECK_UINT(seen.call.stream, (uint64_t)stream);
    CHECK_UINT(seen.call.a, 1000);
    CHECK_UINT(seen.call.b, sizeof(float));
    CHECK_UINT(seen.call.c, CURAND_RNG_PSEUDO_PHILOX4_32_10);
    CHECK(!curandDestroyGenerator(g));
    CHECK_CODE(curandGenerateNormal(g, numbers, 1000, 0, 1),
               CURAND_STATUS_NOT_INITIALIZED);
    CHECK_CODE(curandDestroyGenerator(g), CURAND_STATUS_NOT_INITIALIZED);
}

TEST(a_generator_of_the_host_writes_zeros)
{
    curandGenerator_t g;
    double numbers[] = {1, 2, 3};

    CHECK(!curandCreateGeneratorHost(&g, CURAND_RNG_PSEUDO_DEFAULT));
    CHECK(!curandGenerateUniformDouble(g, numbers, 2));
    CHECK(numbers[0] == 0 && numbers[1] == 0 && numbers[2] == 3);
    CHECK(trace_seen(TRACE_LIBRARY_CALL).count == 0);
}

TEST(the_version_agrees_with_its_parts)
{
    int version = 0, major = 0;

    CHECK(!curandGetVersion(&version));
    CHECK(!curandGetProperty(MAJOR_VERSION, &major));
    CHECK(version == CURAND_VERSION && major == CURAND_VER_MAJOR);
    CHECK_CODE(curandGetProperty((libraryPropertyType)9, &major),
               CURAND_STATUS_OUT_OF_RANGE);
}
