/* SPDX-License-Identifier: Apache-2.0
 * The driver's functions, for those who ask the runtime for them. */
#include <cuda.h>
#include <dlfcn.h>

#include "capture/cudart/cudart.h"

#undef cuGetProcAddress
typedef CUresult get_proc(const char *, void **, int, cuuint64_t,
                          CUdriverProcAddressQueryResult *);

static get_proc *driver_get_proc(void)
{
    static get_proc *found;
    void *driver = found ? NULL : dlopen("libcuda.so.1", RTLD_LAZY);

    if (driver)
        found = (get_proc *)dlsym(driver, "cuGetProcAddress_v2");
    return found;
}

cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **function, unsigned int version,
    unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    NEED(symbol && function);

    CUdriverProcAddressQueryResult result =
        CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    get_proc *get = driver_get_proc();

    *function = NULL;
    int rc = get ? (int)get(symbol, function, (int)version, flags, &result)
                 : (int)CUDA_ERROR_NOT_FOUND;
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)result;
    return status ? cudaSuccess : cudart_result(rc);
}

#if MEMSIM_CUDA_MAJOR < 13
cudaError_t cudaGetDriverEntryPoint(
    const char *symbol, void **function, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, 12000, flags,
                                            status);
}
#endif
