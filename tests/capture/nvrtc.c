/* SPDX-License-Identifier: Apache-2.0
 * NVRTC: what it 'compiles' can be loaded and launched by its names. */
#include <cuda.h>
#include <nvrtc.h>

#include "check.h"

static const char source[] =
    "extern \"C\" __global__ void __launch_bounds__(256) plain(int *p) {}\n"
    "__global__ static void mangled() {}\n"
    "template <typename T, int N> __global__ void generic(T *p) {}\n";

static nvrtcProgram compile(const char *option)
{
    const char *options[] = {option};
    nvrtcProgram program = NULL;

    CHECK(!nvrtcCreateProgram(&program, source, "a.cu", 0, NULL, NULL));
    CHECK(!nvrtcAddNameExpression(program, "&generic<float, 4>"));
    CHECK(!nvrtcCompileProgram(program, 1, options));
    return program;
}

static CUmodule load(const void *image)
{
    CUcontext context;
    CUmodule module = NULL;

    CHECK(!cuInit(0));
    CHECK(!cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(!cuCtxSetCurrent(context));
    CHECK(!cuModuleLoadData(&module, image));
    return module;
}

static void check_kernels(CUmodule module, const char *lowered)
{
    CUfunction f;
    unsigned count;

    CHECK(!cuModuleGetFunctionCount(&count, module));
    CHECK(count == 3);
    CHECK(!cuModuleGetFunction(&f, module, lowered));
    CHECK(!cuModuleGetFunction(&f, module, "plain"));
    CHECK(!cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, 0, NULL, NULL));
    CHECK(!cuModuleGetFunction(&f, module, "_Z7mangledv"));
    CHECK_CODE(cuModuleGetFunction(&f, module, "generic"),
               CUDA_ERROR_NOT_FOUND);
}

TEST(ptx_is_text_that_loads)
{
    nvrtcProgram program = compile("--gpu-architecture=compute_90");
    const char *lowered = NULL;
    char ptx[4096] = "";
    size_t bytes;

    CHECK(!nvrtcGetLoweredName(program, "&generic<float, 4>", &lowered));
    CHECK_CODE(nvrtcGetLoweredName(program, "other", &lowered),
               NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
    CHECK(!nvrtcGetPTXSize(program, &bytes));
    CHECK(bytes < sizeof ptx);
    CHECK(!nvrtcGetPTX(program, ptx));
    CHECK(strlen(ptx) == bytes - 1);
    CHECK(strstr(ptx, ".target sm_90"));
    check_kernels(load(ptx), lowered);
    CHECK(!nvrtcGetCUBINSize(program, &bytes));
    CHECK(bytes == 0);
}

TEST(a_cubin_is_an_elf_file_that_loads)
{
    nvrtcProgram program = compile("-arch=sm_90");
    const char *lowered = NULL;
    char cubin[4096];
    size_t bytes;

    CHECK(!nvrtcGetLoweredName(program, "&generic<float, 4>", &lowered));
    CHECK(!nvrtcGetCUBINSize(program, &bytes));
    CHECK(bytes > 64 && bytes < sizeof cubin);
    CHECK(!nvrtcGetCUBIN(program, cubin));
    CHECK(!memcmp(cubin, "\177ELF", 4));
    check_kernels(load(cubin), lowered);
}

TEST(order_matters)
{
    const char *name;
    nvrtcProgram program;
    size_t bytes;
    int major, minor;

    CHECK(!nvrtcVersion(&major, &minor));
    CHECK(major == 13);
    CHECK(!nvrtcCreateProgram(&program, source, NULL, 0, NULL, NULL));
    CHECK_CODE(nvrtcGetLoweredName(program, "plain", &name),
               NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
    CHECK(!nvrtcCompileProgram(program, 0, NULL));
    CHECK_CODE(nvrtcAddNameExpression(program, "plain"),
               NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
    CHECK(!nvrtcGetProgramLogSize(program, &bytes));
    CHECK(bytes == 1);
    CHECK(!nvrtcDestroyProgram(&program));
    CHECK(!program);
    CHECK_CODE(nvrtcDestroyProgram(&program), NVRTC_ERROR_INVALID_PROGRAM);
    CHECK_STR(nvrtcGetErrorString(NVRTC_ERROR_COMPILATION),
              "NVRTC_ERROR_COMPILATION");
}
