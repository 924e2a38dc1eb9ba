/* SPDX-License-Identifier: Apache-2.0
 * __device__ variables: an address on each device once somebody asks. */
#include <pthread.h>

#include "capture/core/base/pages.h"
#include "capture/core/work/stream.h"
#include "capture/cudart/cudart.h"
#include "common/trace/session.h"

void __cudaRegisterVar(void **handle, char *host, char *device,
                       const char *name, int external, size_t bytes,
                       int constant, int global);

#define VARIABLES_MAX (1u << 16)
#define DEVICES_MAX   SESSION_DEVICES

static struct variable {
    const void *host;
    size_t bytes;
    uint64_t address[DEVICES_MAX];
} * variables;
static uint32_t variable_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void __cudaRegisterVar(void **handle, char *host, char *device,
                       const char *name, int external, size_t bytes,
                       int constant, int global)
{
    (void)handle, (void)device, (void)name, (void)external;
    (void)constant, (void)global;
    pthread_mutex_lock(&lock);
    if (!variables)
        variables = memsim_pages_reserve(0, VARIABLES_MAX * sizeof *variables);
    if (variables && variable_count < VARIABLES_MAX)
        variables[variable_count++] =
            (struct variable){.host = host, .bytes = bytes};
    pthread_mutex_unlock(&lock);
}

static struct variable *variable_find(const void *host)
{
    for (uint32_t i = variable_count; i-- > 0;)
        if (variables[i].host == host)
            return &variables[i];
    return NULL;
}

static int variable_place(const void *host, uint64_t *address, size_t *bytes)
{
    struct variable *variable = variable_find(host);
    int device = memsim_device_current();
    int rc = CORE_OK;

    if (!variable)
        return cudaErrorInvalidSymbol;
    pthread_mutex_lock(&lock);
    if (!variable->address[device])
        rc = memsim_device_malloc(device, variable->bytes, TRACE_HOW_MALLOC,
                                  false, &variable->address[device]);
    pthread_mutex_unlock(&lock);
    *address = variable->address[device];
    *bytes = variable->bytes;
    return rc;
}

cudaError_t cudaGetSymbolAddress(void **p, const void *symbol)
{
    uint64_t address;
    size_t bytes;
    int rc = variable_place(symbol, &address, &bytes);

    if (!rc)
        *p = (void *)address;
    return cudart_result(rc);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    const struct variable *variable = variable_find(symbol);

    if (!variable)
        return cudart_result(cudaErrorInvalidSymbol);
    *bytes = variable->bytes;
    return cudaSuccess;
}

static cudaError_t symbol_copy(const void *symbol, const void *other,
                               size_t bytes, size_t offset, int to,
                               enum cudaMemcpyKind kind, cudaStream_t stream)
{
    uint64_t address;
    size_t size;
    int rc = variable_place(symbol, &address, &size);

    if (!rc && (offset > size || bytes > size - offset))
        rc = CORE_INVALID_VALUE;
    if (!rc)
        rc = memsim_copy(to ? address + offset : (uint64_t)other,
                         to ? (uint64_t)other : address + offset, bytes,
                         (int)kind, STREAM(stream), true);
    return cudart_result(rc);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from,
                               size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    return symbol_copy(symbol, from, bytes, offset, 1, kind, 0);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from,
                                    size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind,
                                    cudaStream_t stream)
{
    return symbol_copy(symbol, from, bytes, offset, 1, kind, stream);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes,
                                 size_t offset, enum cudaMemcpyKind kind)
{
    return symbol_copy(symbol, to, bytes, offset, 0, kind, 0);
}
