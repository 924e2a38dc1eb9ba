/* SPDX-License-Identifier: Apache-2.0
 * cuRAND. The numbers are not drawn: generators keep what was set, and each
 * request is recorded with its count. */
#include <curand.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "capture/core/work/library_call.h"
#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/run/record.h"
#include "capture/core/work/stream.h"

struct generator {
    bool on_host; /* its numbers go to host memory: zeros */
    curandRngType_t type;
    uint64_t stream, seed, offset;
    curandOrdering_t order;
    uint32_t dimensions;
};

static struct generator *generator_get(curandGenerator_t generator)
{
    return memsim_handle_get(HANDLE_CURAND, generator);
}

static curandStatus_t generator_new(curandGenerator_t *generator,
                                    curandRngType_t type, bool on_host)
{
    if (!generator)
        return CURAND_STATUS_OUT_OF_RANGE;
    if (!on_host && memsim_device_open(memsim_device_current()))
        return CURAND_STATUS_INITIALIZATION_FAILED;
    struct generator *g = memsim_handle_new(HANDLE_CURAND, sizeof *g);
    if (!g)
        return CURAND_STATUS_ALLOCATION_FAILED;
    *g = (struct generator){.on_host = on_host, .type = type,
                            .dimensions = 1};
    *generator = (curandGenerator_t)g;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandCreateGenerator(curandGenerator_t *generator,
                                     curandRngType_t type)
{
    return generator_new(generator, type, false);
}

curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator,
                                         curandRngType_t type)
{
    return generator_new(generator, type, true);
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator)
{
    return memsim_handle_free(HANDLE_CURAND, generator)
               ? CURAND_STATUS_NOT_INITIALIZED
               : CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetVersion(int *version)
{
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetProperty(libraryPropertyType type, int *value)
{
    static const int values[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR,
                                 CURAND_VER_PATCH};

    if ((unsigned)type > PATCH_LEVEL)
        return CURAND_STATUS_OUT_OF_RANGE;
    *value = values[type];
    return CURAND_STATUS_SUCCESS;
}

#define SET(name, T, field, cast)                                              \
    curandStatus_t name(curandGenerator_t generator, T value)                  \
    {                                                                          \
        struct generator *g = generator_get(generator);                        \
                                                                               \
        if (!g)                                                                \
            return CURAND_STATUS_NOT_INITIALIZED;                              \
        g->field = (cast)value;                                                \
        return CURAND_STATUS_SUCCESS;                                          \
    }

SET(curandSetStream, cudaStream_t, stream, uint64_t)
SET(curandSetPseudoRandomGeneratorSeed, unsigned long long, seed, uint64_t)
SET(curandSetGeneratorOffset, unsigned long long, offset, uint64_t)
SET(curandSetGeneratorOrdering, curandOrdering_t, order, curandOrdering_t)
SET(curandSetQuasiRandomGeneratorDimensions, unsigned, dimensions, uint32_t)

static curandStatus_t generate_numbers(curandGenerator_t generator,
                                       uint32_t name, void *output,
                                       size_t count, size_t unit)
{
    const struct generator *g = generator_get(generator);

    if (!g)
        return CURAND_STATUS_NOT_INITIALIZED;
    if (g->on_host) {
        memset(output, 0, count * unit);
        return CURAND_STATUS_SUCCESS;
    }
    const struct call call = {.name = name, .stream = g->stream,
                              .values = {count, unit, (uint64_t)g->type}};
    return memsim_call(&call) ? CURAND_STATUS_LAUNCH_FAILURE
                              : CURAND_STATUS_SUCCESS;
}

#define GENERATE(name, T, ...)                                                 \
    curandStatus_t name(curandGenerator_t generator, T *output,                \
                        size_t count __VA_OPT__(, ) __VA_ARGS__)               \
    {                                                                          \
        return generate_numbers(generator, NAME_OF(#name), output, count,      \
                                sizeof *output);                               \
    }

/* The parameters of a distribution don't matter. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

GENERATE(curandGenerate, unsigned)
GENERATE(curandGenerateLongLong, unsigned long long)
GENERATE(curandGenerateUniform, float)
GENERATE(curandGenerateUniformDouble, double)
GENERATE(curandGenerateNormal, float, float mean, float deviation)
GENERATE(curandGenerateNormalDouble, double, double mean, double deviation)
GENERATE(curandGenerateLogNormal, float, float mean, float deviation)
GENERATE(curandGenerateLogNormalDouble, double, double mean, double deviation)
GENERATE(curandGeneratePoisson, unsigned, double lambda)
GENERATE(curandGeneratePoissonMethod, unsigned, double lambda,
         curandMethod_t method)

curandStatus_t curandGenerateSeeds(curandGenerator_t generator)
{
    return generate_numbers(generator, NAME_OF("curandGenerateSeeds"), NULL, 0,
                            0);
}
