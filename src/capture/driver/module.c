/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/driver/module.h"

#include <pthread.h>
#include <string.h>

#include "capture/core/base/handle.h"
#include "capture/core/memory/occupancy.h"
#include "capture/core/base/pages.h"
#include "capture/driver/image.h"

struct variable {
    struct variable *next;
    const char *name;
    uint64_t bytes;
    uint64_t address; /* once somebody asked for it */
};

struct module {
    enum image_form form;
    int device;
    uint32_t function_count;
    struct function *functions;
    struct variable *variables;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *text_keep(const char *text, size_t length)
{
    char *kept = memsim_pages_keep(length + 1);

    if (kept)
        memcpy(kept, text, length);
    return kept;
}

static struct function *function_new(struct module *module, const char *name,
                                     size_t length)
{
    struct function *f = memsim_handle_new(HANDLE_FUNCTION, sizeof *f);

    if (!f)
        return NULL;
    f->module = module;
    f->name = text_keep(name, length);
    /* PTX is NVRTC's, whose kernels are PyTorch's elementwise ones. */
    f->kernel = f->name
                    ? memsim_kernel_named(f->name, module->form != IMAGE_PTX)
                    : NULL;
    f->registers = OCCUPANCY_REGISTERS;
    if (f->kernel)
        f->kernel->shared_limit_bytes =
            memsim_device_gpu()->shared_per_block_bytes;
    f->next = module->functions;
    module->functions = f;
    module->function_count++;
    return f->kernel ? f : NULL;
}

static bool function_take(const struct image_kernel *kernel, void *module)
{
    struct function *f = function_new(module, kernel->name, kernel->length);

    if (!f)
        return false;
    if (kernel->registers)
        f->registers = kernel->registers;
    f->shared_bytes = f->kernel->shared_static_bytes = kernel->shared_bytes;
    memsim_kernel_parameters(f->kernel, kernel->parameter_bytes,
                             kernel->parameter_count);
    return true;
}

static bool variable_take(const struct image_variable *found, void *context)
{
    struct variable *variable = memsim_pages_keep(sizeof *variable);
    struct module *module = context;

    if (!variable)
        return false;
    *variable = (struct variable){
        .next = module->variables,
        .name = text_keep(found->name, found->length),
        .bytes = found->bytes,
    };
    module->variables = variable->name ? variable : module->variables;
    return variable->name;
}

static struct function *function_find(struct module *module, const char *name)
{
    struct function *f = module->functions;

    while (f && strcmp(f->name, name))
        f = f->next;
    if (!f && module->form == IMAGE_FATBIN)
        return function_new(module, name, strlen(name));
    return f;
}

struct function *driver_function_own(const void *handle)
{
    return memsim_handle_get(HANDLE_FUNCTION, handle);
}

bool driver_function(const void *handle, struct function *function)
{
    const struct function *own = driver_function_own(handle);
    struct kernel *kernel = memsim_handle_get(HANDLE_KERNEL, handle);

    if (own)
        *function = *own;
    else if (kernel)
        *function = (struct function){
            .kernel = kernel,
            .registers = OCCUPANCY_REGISTERS,
            .shared_bytes = kernel->shared_static_bytes,
        };
    return own || kernel;
}

static CUresult module_load(void **out, const void *image)
{
    enum image_form form = image_form(image);

    NEED(driver_context());
    if (!out || !image)
        return CUDA_ERROR_INVALID_VALUE;
    if (form == IMAGE_BAD)
        return CUDA_ERROR_INVALID_IMAGE;
    struct module *module = memsim_handle_new(HANDLE_MODULE, sizeof *module);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->form = form;
    module->device = memsim_device_current();
    const struct image_reader reader = {function_take, variable_take, module};
    pthread_mutex_lock(&lock);
    image_read(image, &reader);
    pthread_mutex_unlock(&lock);
    *out = module;
    return CUDA_SUCCESS;
}

static CUresult module_load_file(void **out, const char *path)
{
    struct image_file file;

    if (!image_file_open(&file, path))
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult rc =
        file.data ? module_load(out, file.data) : CUDA_ERROR_INVALID_IMAGE;
    image_file_close(&file);
    return rc;
}

static CUresult module_unload(void *handle)
{
    struct module *module = memsim_handle_get(HANDLE_MODULE, handle);

    NEED(driver_ready());
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    for (struct function *f = module->functions, *next; f; f = next) {
        next = f->next;
        memsim_handle_free(HANDLE_KERNEL, f->kernel);
        memsim_handle_free(HANDLE_FUNCTION, f);
    }
    for (struct variable *v = module->variables; v; v = v->next)
        if (v->address)
            memsim_device_free(v->address, TRACE_HOW_MALLOC);
    pthread_mutex_unlock(&lock);
    return driver_result(memsim_handle_free(HANDLE_MODULE, module));
}

static CUresult function_get(void **out, const void *handle, const char *name)
{
    struct module *module = memsim_handle_get(HANDLE_MODULE, handle);

    NEED(driver_ready());
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    *out = function_find(module, name);
    pthread_mutex_unlock(&lock);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult variable_get(CUdeviceptr *pointer, size_t *bytes,
                             const void *handle, const char *name)
{
    struct module *module = memsim_handle_get(HANDLE_MODULE, handle);
    int rc = CORE_OK;

    NEED(driver_context());
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    struct variable *v = module->variables;
    while (v && strcmp(v->name, name))
        v = v->next;
    if (!v)
        return CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    if (!v->address)
        rc = memsim_device_malloc(module->device, v->bytes, TRACE_HOW_MALLOC,
                                  false, &v->address);
    pthread_mutex_unlock(&lock);
    if (pointer)
        *pointer = v->address;
    if (bytes)
        *bytes = v->bytes;
    return driver_result(rc);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    return module_load_file((void **)module, path);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return module_load((void **)module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                            unsigned int count, CUjit_option *options,
                            void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return module_load((void **)module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return module_load((void **)module, image);
}

CUresult cuModuleUnload(CUmodule module)
{
    return module_unload(module);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name)
{
    return function_get((void **)function, module, name);
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
    const struct module *module = memsim_handle_get(HANDLE_MODULE, handle);

    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = module->function_count;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUmodule module,
                           const char *name)
{
    return variable_get(pointer, bytes, module, name);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    NEED_PLACE(mode);
    *mode = CU_MODULE_LAZY_LOADING; /* the default since CUDA 12.2 */
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image,
                           CUjit_option *options, void **values,
                           unsigned int count, CUlibraryOption *more,
                           void **more_values, unsigned int more_count)
{
    (void)options, (void)values, (void)count;
    (void)more, (void)more_values, (void)more_count;
    return module_load((void **)library, image);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path,
                               CUjit_option *options, void **values,
                               unsigned int count, CUlibraryOption *more,
                               void **more_values, unsigned int more_count)
{
    (void)options, (void)values, (void)count;
    (void)more, (void)more_values, (void)more_count;
    return module_load_file((void **)library, path);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return module_unload(library);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library,
                            const char *name)
{
    return function_get((void **)kernel, library, name);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
    return cuModuleGetFunctionCount(count, (CUmodule)library);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count,
                                   CUlibrary handle)
{
    const struct module *module = memsim_handle_get(HANDLE_MODULE, handle);

    if (!module || !kernels)
        return module ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    for (struct function *f = module->functions; f && count; f = f->next) {
        *kernels++ = (CUkernel)f;
        count--;
    }
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    NEED_PLACE(module);
    *module = (CUmodule)library;
    return memsim_handle_get(HANDLE_MODULE, library)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes,
                            CUlibrary library, const char *name)
{
    return variable_get(pointer, bytes, library, name);
}
