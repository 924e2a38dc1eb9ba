/* SPDX-License-Identifier: Apache-2.0
 * nvJitLink: PTX texts are joined, a cubin comes out as it went in. NVIDIA's
 * header has inline functions of these names, so that it is not included. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

#include "check.h"

int nvJitLinkCreate(void **handle, unsigned count, const char **options);
int nvJitLinkDestroy(void **handle);
int nvJitLinkAddData(void *handle, int type, const void *data, size_t bytes,
                     const char *name);
int nvJitLinkComplete(void *handle);
int nvJitLinkGetLinkedCubinSize(void *handle, size_t *bytes);
int nvJitLinkGetLinkedCubin(void *handle, void *out);
int nvJitLinkGetErrorLogSize(void *handle, size_t *bytes);

#define MISSING_ARCH  2
#define INVALID_INPUT 3

static const char *options[] = {"-arch=sm_90"};

static const char *linked(void *handle)
{
    static char out[64];
    size_t bytes = 0;

    CHECK(!nvJitLinkComplete(handle));
    CHECK(!nvJitLinkGetLinkedCubinSize(handle, &bytes));
    CHECK(bytes <= sizeof out && !nvJitLinkGetLinkedCubin(handle, out));
    return out;
}

TEST(texts_are_joined)
{
    void *handle;

    CHECK(!nvJitLinkCreate(&handle, 1, options));
    CHECK(!nvJitLinkAddData(handle, 2, ".version 8\n", 11, "a"));
    CHECK(!nvJitLinkAddData(handle, 2, "// more\n", 9, "b")); /* with its NUL */
    CHECK_STR(linked(handle), ".version 8\n// more\n");
}

TEST(of_binaries_the_last_comes_out)
{
    void *handle;

    CHECK(!nvJitLinkCreate(&handle, 1, options));
    CHECK(!nvJitLinkAddData(handle, 1, "\177ELF1", 5, "a"));
    CHECK(!nvJitLinkAddData(handle, 1, "\177ELF2", 5, "b"));
    CHECK_STR(linked(handle), "\177ELF2");
}

/* Code for the linker, as NVVM makes it for numba. */
TEST(linked_code_is_loaded_by_the_driver)
{
    static const char lto[] = "\xed"
                              "CN\x7f and what the linker reads";
    CUmodule module;
    CUlibrary library;
    CUfunction function;
    CUkernel kernel;
    void *handle;

    CHECK(!cuInit(0) && !cudaFree(NULL));
    CHECK(!nvJitLinkCreate(&handle, 1, options));
    CHECK(!nvJitLinkAddData(handle, 4, lto, sizeof lto - 1, "a"));
    CHECK(!cuModuleLoadData(&module, linked(handle)));
    CHECK(!cuModuleGetFunction(&function, module, "scale"));
    CHECK(!cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    CHECK(!cuLibraryLoadData(&library, linked(handle), NULL, NULL, 0, NULL,
                             NULL, 0));
    CHECK(!cuLibraryGetKernel(&kernel, library, "scale"));
    CHECK_CODE(cuModuleLoadData(&module, "no code"), CUDA_ERROR_INVALID_IMAGE);
}

TEST(a_handle_that_is_none_is_refused)
{
    void *handle, *old;
    size_t bytes = 0;

    CHECK(!nvJitLinkCreate(&handle, 1, options));
    old = handle;
    CHECK(nvJitLinkAddData(handle, 1, NULL, 5, "a") == INVALID_INPUT);
    CHECK(!nvJitLinkGetErrorLogSize(handle, &bytes) && bytes == 1);
    CHECK(!nvJitLinkDestroy(&handle) && !handle);
    CHECK(nvJitLinkComplete(old) == INVALID_INPUT);
    CHECK(nvJitLinkDestroy(&old) == INVALID_INPUT);
}

/* As the library itself answers, which needs no GPU for that. */
TEST(an_architecture_must_be_named)
{
    const char *other[] = {"-O3"};
    void *handle;

    CHECK(nvJitLinkCreate(&handle, 0, NULL) == MISSING_ARCH);
    CHECK(nvJitLinkCreate(&handle, 1, other) == MISSING_ARCH);
}
