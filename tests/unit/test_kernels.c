/* SPDX-License-Identifier: Apache-2.0
 * The catalogue of kernels: each row can be found, and each computation on the
 * host has a row. What names say is in test_work.c and test_label.c. */
#include "check.h"
#include "kernels/kernel_row.h"

static const struct kernel_row *const lists[] = {
    kernel_rows_loops, kernel_rows_norm, kernel_rows_index,
    kernel_rows_sort,  kernel_rows_host, kernel_rows_library,
};

static const struct kernel_row *row_next(const struct kernel_row *row)
{
    static size_t list;

    list = row ? list : 0;
    row = row ? row + 1 : lists[0];
    while (!row->base && !row->contains) {
        if (++list == sizeof lists / sizeof *lists)
            return NULL;
        row = lists[list];
    }
    return row;
}

/* PATTERN without its '*'. */
static const char *literal(const char *pattern, char *out)
{
    char *end = out;

    for (; pattern && *pattern; pattern++)
        if (*pattern != '*')
            *end++ = *pattern;
    *end = 0;
    return out;
}

TEST(every_row_can_be_found)
{
    char name[512], base[128], contains[128];
    struct work_kernel kernel;

    for (const struct kernel_row *row = row_next(NULL); row;
         row = row_next(row)) {
        snprintf(name, sizeof name, "%s<%s>(int)",
                 row->base ? literal(row->base, base) : "x",
                 literal(row->contains, contains));
        work_kernel_read(name, &kernel);
        if (kernel.row != row)
            CHECK_FAIL("%s: a row before it fits as well", name);
    }
}

TEST(every_computation_has_a_kernel)
{
    bool used[KERNEL_HOSTS] = {[KERNEL_HOST_NONE] = true};

    for (const struct kernel_row *row = row_next(NULL); row;
         row = row_next(row))
        used[row->host] = true;
    for (int i = 0; i < KERNEL_HOSTS; i++)
        if (!used[i])
            CHECK_FAIL("computation %d has no row", i);
}

TEST(arguments_of_another_s_kernel_are_not_read)
{
    static const char *const names[] = {
        "_Z16flash_fwd_kernelPf", "_Z13reduce_kernelPf",
        "_Z17fmha_cutlassF_minePf", "_Z27unrolled_elementwise_kernelPf",
        "_Z24flash_bwd_dot_do_o_kernelPf", "_Z25multi_tensor_apply_kernelPf"};
    struct work_kernel kernel;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        work_kernel_read(names[i], &kernel);
        CHECK_UINT(kernel.arguments, KERNEL_ARGUMENTS_NONE);
    }
}

TEST(counts_what_the_arguments_are_of)
{
    static const struct {
        const char *name;
        enum kernel_arguments arguments;
        unsigned count;
    } kernels[] = {
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
         "addIfEESt5arrayIPcLm3EEEEviT0_T1_",
         KERNEL_ARGUMENTS_LOOP, 3},
        {"void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<"
         "float>>(long, int volatile*, TensorListMetadata<4>)",
         KERNEL_ARGUMENTS_LISTS_FOREIGN, 4},
        {"void at::native::multi_tensor_apply_kernel<at::native::"
         "TensorListMetadata<2>, int>(at::native::TensorListMetadata<2>, int)",
         KERNEL_ARGUMENTS_LISTS, 2},
        {"at::native::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(int)",
         KERNEL_ARGUMENTS_CAT, 128},
        {"at::native::triu_tril_kernel<float>(long, int)",
         KERNEL_ARGUMENTS_SIZES, 0},
    };
    struct work_kernel kernel;

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        work_kernel_read(kernels[i].name, &kernel);
        CHECK_UINT(kernel.arguments, kernels[i].arguments);
        CHECK_UINT(kernel.count, kernels[i].count);
    }
}

TEST(families_by_name_alone)
{
    static const struct {
        const char *name;
        enum work_family family;
    } kernels[] = {
        {"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", WORK_GEMM},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64>(int)",
         WORK_GEMM},
        {"sm90_xmma_wgrad_implicit_gemm_bf16", WORK_CONVOLUTION_WGRAD},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16",
         WORK_ATTENTION_FORWARD},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16",
         WORK_ATTENTION_BACKWARD},
        {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, "
         "cutlass::half_t>>(int)",
         WORK_ATTENTION_FORWARD},
        {"void my_kernel(float*)", WORK_OTHER},
    };
    struct work_kernel kernel;

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        work_kernel_read(kernels[i].name, &kernel);
        CHECK_UINT(kernel_family(&kernel), kernels[i].family);
    }
}
