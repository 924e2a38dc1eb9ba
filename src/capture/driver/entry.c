/* SPDX-License-Identifier: Apache-2.0
 * cuGetProcAddress: a function by its base name, in the form that a given CUDA
 * version's header declares it. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/run/process.h"
#include "capture/driver/driver.h"

#define NAME_MAX_BYTES 128
#define FORMS          4 /* NAME, NAME_v2, NAME_v3, NAME_v4 */

/* The CUDA versions in which NAME_v2, _v3 and _v4 came. From cudaTypedefs.h of
 * CUDA 13.0, where the pointer types' names say so. Those not listed here came
 * with CUDA 3.2, when sizes and addresses grew to 64 bits. */
#define V2_SINCE 3020
static const struct forms {
    const char *name;
    int since[FORMS - 1];
} exceptions[] = {
    {"cuCtxCreate", {3020, 11040, 12050}},
    {"cuCtxDestroy", {4000}},
    {"cuCtxGetDevice", {13000}},
    {"cuCtxPopCurrent", {4000}},
    {"cuCtxPushCurrent", {4000}},
    {"cuCtxSynchronize", {13000}},
    {"cuDeviceGetUuid", {11040}},
    {"cuDevicePrimaryCtxRelease", {11000}},
    {"cuDevicePrimaryCtxReset", {11000}},
    {"cuDevicePrimaryCtxSetFlags", {11000}},
    {"cuEventDestroy", {4000}},
    {"cuEventElapsedTime", {12080}},
    {"cuGetProcAddress", {12000}},
    {"cuGraphAddDependencies", {12030}},
    {"cuGraphAddKernelNode", {12000}},
    {"cuGraphAddNode", {12030}},
    {"cuGraphExecKernelNodeSetParams", {12000}},
    {"cuGraphExecUpdate", {12000}},
    {"cuGraphGetEdges", {12030}},
    {"cuGraphInstantiate", {11000}},
    {"cuGraphKernelNodeGetParams", {12000}},
    {"cuGraphKernelNodeSetParams", {12000}},
    {"cuGraphNodeGetDependencies", {12030}},
    {"cuGraphNodeGetDependentNodes", {12030}},
    {"cuGraphRemoveDependencies", {12030}},
    {"cuGraphicsResourceSetMapFlags", {6050}},
    {"cuIpcOpenMemHandle", {11000}},
    {"cuLinkAddData", {6050}},
    {"cuLinkAddFile", {6050}},
    {"cuLinkCreate", {6050}},
    {"cuMemAdvise", {12020}},
    {"cuMemHostRegister", {6050}},
    {"cuMemPrefetchAsync", {12020}},
    {"cuMemcpy3DBatchAsync", {13000}},
    {"cuMemcpyBatchAsync", {13000}},
    {"cuStreamBatchMemOp", {11070}},
    {"cuStreamBeginCapture", {10010}},
    {"cuStreamDestroy", {4000}},
    {"cuStreamGetCaptureInfo", {11030, 12030}},
    {"cuStreamGetCtx", {12050}},
    {"cuStreamUpdateCaptureDependencies", {12030}},
    {"cuStreamWaitValue32", {11070}},
    {"cuStreamWaitValue64", {11070}},
    {"cuStreamWriteValue32", {11070}},
    {"cuStreamWriteValue64", {11070}},
    {"cuTexRefSetAddress2D", {3020, 4010}},
};

static void *own_handle(void)
{
    static void *handle;
    Dl_info info;

    if (!handle && dladdr((void *)own_handle, &info))
        handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

static void *symbol_find(const char *name, const char *form, const char *ending)
{
    char whole[NAME_MAX_BYTES + 16];

    snprintf(whole, sizeof whole, "%s%s%s", name, form, ending);
    return own_handle() ? dlsym(own_handle(), whole) : NULL;
}

/* The number of the newest form that VERSION knows. */
static int form_of(const char *name, int version)
{
    static const struct forms others = {"", {V2_SINCE}};
    const struct forms *forms = &others;
    int form = 0;

    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (!strcmp(exceptions[i].name, name))
            forms = &exceptions[i];
    while (form < FORMS - 1 && forms->since[form] &&
           forms->since[form] <= version)
        form++;
    return form;
}

static void *function_find(const char *name, int version, bool per_thread)
{
    static const char *const texts[FORMS] = {"", "_v2", "_v3", "_v4"};
    static const char *const endings[] = {"_ptsz", "_ptds", ""};
    void *found = NULL;

    for (int form = form_of(name, version); form >= 0 && !found; form--)
        for (int e = per_thread ? 0 : 2; e < 3 && !found; e++)
            found = symbol_find(name, texts[form], endings[e]);
    return found;
}

/* CUDA 12 asks cuGetProcAddress for itself by the name without _v2 too. */
CUresult cuGetProcAddress(const char *name, void **function, int version,
                          cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;

    if (!name || !function || strlen(name) >= NAME_MAX_BYTES ||
        flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    *function = function_find(
        name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    if (!*function)
        result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (status)
        *status = result;
    return *function || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *name, void **function, int version,
                          cuuint64_t flags);
CUresult cuGetProcAddress(const char *name, void **function, int version,
                          cuuint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* CuPy's wheels cannot be linked in another way; until version 13 they load the
 * shared runtime (cupy/cupy, pull request 7954). */
static void static_runtime_note(const char *path)
{
    const char *name = strrchr(path, '/');

    if (strstr(path, "/cupy"))
        memsim_note("CuPy has had the CUDA runtime linked into it since "
                    "version 13, which memsim cannot stand in for: install an "
                    "earlier one (pip install 'cupy-cuda12x<13'), or compute "
                    "with PyTorch");
    else
        memsim_note("%.60s has the CUDA runtime linked into it, which memsim "
                    "cannot stand in for: build it with nvcc -cudart shared",
                    name ? name + 1 : path);
}

/* The undocumented tables by which NVIDIA's own libraries know each other:
 * there are none here. Who asks is a runtime that was linked into a program or
 * library: it would check the driver's integrity next. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    NEED_PLACE(table);
    Dl_info who = {.dli_fname = "?"};

    (void)id;
    *table = NULL;
    dladdr(__builtin_return_address(0), &who);
    static_runtime_note(who.dli_fname);
    return CUDA_ERROR_NOT_FOUND;
}
