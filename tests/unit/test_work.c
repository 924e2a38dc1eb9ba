/* SPDX-License-Identifier: Apache-2.0
 * Names and fields as PyTorch 2.11 on the fake device recorded them. */
#include "kernels/work.h"

#include "check.h"

#define PACK(low, high) ((uint64_t)(high) << 32 | (low))

#define WORDS(...) ((const uint64_t[TRACE_LAUNCH_WORDS]){__VA_ARGS__})

static struct work describe_launch(const char *name, enum trace_rule rule,
                                   const uint64_t words[TRACE_LAUNCH_WORDS],
                                   uint32_t grid)
{
    struct trace_launch launch = {.grid_x_y = PACK(grid, 1),
                                  .grid_z_block_x = PACK(1, 128),
                                  .block_y_z = PACK(1, 1),
                                  .shared_bytes_rule = PACK(0, (uint32_t)rule)};
    const struct op op = {.kind = OP_LAUNCH,
                          .record = TRACE_LAUNCH,
                          .field_count = TRACE_WORD_COUNT(LAUNCH),
                          .fields = (const uint64_t *)&launch};
    struct work work;

    memcpy(&launch.a, words, TRACE_LAUNCH_WORDS * sizeof *words);
    work_describe(&op, name, &work);
    CHECK_UINT(work.blocks, grid);
    CHECK_UINT(work.threads, 128);
    return work;
}

#define CHECK_MOVED(work, read, written)                                       \
    do {                                                                       \
        CHECK_UINT((uint64_t)(work).read_bytes, (read));                       \
        CHECK_UINT((uint64_t)(work).written_bytes, (written));                 \
    } while (0)

static const struct {
    const char *name;
    enum work_family family;
    unsigned read, written; /* bytes an element */
} elementwise[] = {
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5"
     "arrayIPcLm1EEEEviT0_T1_",
     WORK_ELEMENTWISE, 0, 4},
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfE"
     "ESt5arrayIPcLm3EEEEviT0_T1_",
     WORK_ELEMENTWISE, 8, 4},
    {"_ZN2at6native29vectorized_elementwise_kernelILi8EZNS0_25bfloat16_copy_ker"
     "nel_cudaERNS_18TensorIteratorBaseEEUlfE_St5arrayIPcLm2EEEEviT0_T1_",
     WORK_ELEMENTWISE, 4, 2},
    {"_ZN2at6native29vectorized_elementwise_kernelILi2EZZZNS0_16tanh_kernel_cud"
     "aERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE_clEvEUldE_St5arrayIPcLm2E"
     "EEEviT0_T1_",
     WORK_ELEMENTWISE, 8, 8},
    /* as a profiler prints it */
    {"void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunct"
     "or<long, long, bool, at::native::(anonymous namespace)::CompareEqFunctor<"
     "long> >, std::array<char*, 2ul> >(int, at::native::AUnaryFunctor<long, lo"
     "ng, bool, at::native::(anonymous namespace)::CompareEqFunctor<long> >, st"
     "d::array<char*, 2ul>)",
     WORK_ELEMENTWISE, 8, 1},
    {"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_n"
     "ocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat"
     "16, at::native::binary_internal::MulFunctor<float> > >(at::TensorIterator"
     "Base&, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloa"
     "t16, at::native::binary_internal::MulFunctor<float> > const&)::{lambda(in"
     "t)#1}>(int, int)",
     WORK_STRIDED, 4, 2},
};

TEST(reads_operands_from_the_functor)
{
    for (size_t i = 0; i < sizeof elementwise / sizeof *elementwise; i++) {
        struct work work = describe_launch(elementwise[i].name,
                                           elementwise[i].family == WORK_STRIDED
                                               ? TRACE_RULE_STRIDED
                                               : TRACE_RULE_ELEMENTWISE,
                                           WORDS(777000), 1518);

        CHECK_UINT(work.family, elementwise[i].family);
        CHECK_UINT(work.source, WORK_RULE);
        CHECK_UINT(work.elements, 777000);
        CHECK_MOVED(work, 777000 * elementwise[i].read,
                    777000 * elementwise[i].written);
    }
}

#define GELU_OF(name, which)                                                   \
    "_ZN2at6native29vectorized_elementwise_kernelILi8EZZZNS0_" name            \
    "ERNS_18TensorIteratorBaseENS0_8GeluTypeEENKUlv" which                     \
    "_clEvENKUlvE2_clEvEUlN3c108BFloat16EE_St5arrayIPcLm2EEEEviT0_T1_"

static const struct {
    const char *name;
    enum work_rate rate;
} bounds[] = {
    {GELU_OF("18GeluCUDAKernelImpl", "E"), WORK_RATE_GELU_TANH},
    {GELU_OF("18GeluCUDAKernelImpl", "E0"), WORK_RATE_GELU},
    {GELU_OF("26GeluBackwardCUDAKernelImpl", "E"), WORK_RATE_GELU_TANH_DATA},
    {GELU_OF("26GeluBackwardCUDAKernelImpl", "E0"), WORK_RATE_GELU_DATA},
    {GELU_OF("18TanhCUDAKernelImpl", "E0"), WORK_RATE_NONE},
};

TEST(arithmetic_that_may_take_longer_than_bytes_is_known)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        struct work work = describe_launch(
            bounds[i].name, TRACE_RULE_ELEMENTWISE, WORDS(777000), 1518);

        CHECK_UINT(work.family, WORK_ELEMENTWISE);
        CHECK_UINT(work.elements, 777000);
        CHECK_UINT(work.rate, bounds[i].rate);
    }
}

#define BACKWARD_OF(drops)                                                     \
    "fmha_cutlassB_f32_aligned_64x64_k64" drops "_sm80(PyTorchMemEffAttention" \
    "::AttentionBackwardKernel<float, cutlass::arch::Sm80, true, true, false," \
    " 64, 64, 64, true>::Params)"

TEST(the_backward_of_memory_efficient_attention_says_whether_it_drops)
{
    const uint64_t *words = WORDS(PACK(1024, 1024), PACK(12, 12), PACK(64, 64),
                                  PACK(4, 1));
    struct work with = describe_launch(BACKWARD_OF("_dropout"),
                                       TRACE_RULE_ATTENTION, words, 768);
    struct work without = describe_launch(BACKWARD_OF(""), TRACE_RULE_ATTENTION,
                                          words, 768);

    CHECK_UINT(with.attention.kernel, WORK_ATTENTION_EFFICIENT);
    CHECK(with.attention.dropout && with.attention.causal);
    CHECK(!without.attention.dropout && without.attention.causal);
}

TEST(an_unknown_kernel_is_said_to_be_unknown)
{
    struct work work =
        describe_launch("my_kernel", TRACE_RULE_NONE, WORDS(0), 12);

    CHECK_UINT(work.family, WORK_OTHER);
    CHECK_UINT(work.source, WORK_UNKNOWN);
    CHECK_MOVED(work, 0, 0);
}

static struct work describe_named(enum op_kind kind, enum trace_kind record,
                                  const uint64_t *fields, size_t count,
                                  const char *text, const char *name)
{
    const struct op op = {.kind = kind,
                          .record = record,
                          .field_count = (uint32_t)count,
                          .fields = fields,
                          .text = text,
                          .text_bytes = text ? (uint32_t)strlen(text) : 0};
    struct work work;

    work_describe(&op, name, &work);
    return work;
}

static struct work describe(enum op_kind kind, enum trace_kind record,
                            const uint64_t *fields, size_t count,
                            const char *text)
{
    return describe_named(kind, record, fields, count, text, "");
}

/* A library's call NAME with the numbers a to f. */
#define DESCRIBE_CALL(name, ...)                                               \
    describe_named(OP_LIBRARY_CALL, TRACE_LIBRARY_CALL,                        \
                   TRACE_WORDS(LIBRARY_CALL, __VA_ARGS__),                     \
                   TRACE_WORD_COUNT(LIBRARY_CALL), NULL, name)

/* DESCRIBE(COPY, NULL, .bytes = 5): of a record with those fields. */
#define DESCRIBE(kind, text, ...)                                              \
    describe(OP_##kind, TRACE_##kind, TRACE_WORDS(kind, __VA_ARGS__),          \
             TRACE_WORD_COUNT(kind), text)

/* torch.nn.functional.linear: x[4096, 768] with w[3072, 768], bf16. */
TEST(a_product_has_rows_first)
{
    struct work work =
        DESCRIBE(GEMM, NULL, .m = 3072, .n = 4096, .k = 768, .batch = 1,
                 .types_a_b_c_d = UINT64_C(0x000e000e000e000e),
                 .compute_scale = PACK(68, 0), .transpose_a_b = PACK(1, 0),
                 .lda_ldb = PACK(768, 768), .ldc_ldd = PACK(3072, 3072),
                 .alignment = 256);

    CHECK_UINT(work.family, WORK_GEMM);
    CHECK_UINT(work.type, WORK_BF16);
    CHECK_UINT(work.gemm.m, 4096);
    CHECK_UINT(work.gemm.n, 3072);
    CHECK_UINT(work.gemm.k, 768);
    CHECK(!work.gemm.transpose_a && work.gemm.transpose_b);
    CHECK_UINT(work.gemm.lda, 768);
    CHECK_UINT(work.gemm.ldc, 3072);
    CHECK_UINT((uint64_t)work.flops, UINT64_C(2) * 4096 * 3072 * 768);
    CHECK_MOVED(work, 2 * (4096 * 768 + 768 * 3072), 2 * 4096 * 3072);
}

/* torch.matmul of w[3072, 768] with x[16, 768, 64] in fp16: one w for all. */
TEST(a_matrix_that_a_batch_shares_is_read_once)
{
    const uint64_t types = UINT64_C(0x0002000200020002);
    struct work work =
        DESCRIBE(GEMM, NULL, .m = 64, .n = 3072, .k = 768, .batch = 16,
                 .types_a_b_c_d = types, .stride_a = 768 * 64,
                 .stride_c = 3072 * 64);

    CHECK(work.gemm.shared_a && !work.gemm.shared_b);
    CHECK_MOVED(work, 2 * (3072 * 768 + 16 * 768 * 64), 2 * 16 * 3072 * 64);
    work = DESCRIBE(GEMM, NULL, .m = 64, .n = 3072, .k = 768, .batch = 16,
                    .types_a_b_c_d = types); /* by addresses */
    CHECK(!work.gemm.shared_a && !work.gemm.shared_b);
    CHECK_MOVED(work, 2 * 16 * (3072 * 768 + 768 * 64), 2 * 16 * 3072 * 64);
}

TEST(fp32_products_use_tensor_cores_where_allowed)
{
    struct work work =
        DESCRIBE(GEMM, NULL, .m = 64, .n = 64, .k = 64, .compute_scale = 68);

    CHECK_UINT(work.type, WORK_FP32);
    work = DESCRIBE(GEMM, NULL, .m = 64, .n = 64, .k = 64, .compute_scale = 68,
                    .math_mode = 3); /* CUBLAS_TF32_TENSOR_OP_MATH */
    CHECK_UINT(work.type, WORK_TF32);
    work = DESCRIBE(GEMM, NULL, .m = 64, .n = 64, .k = 64,
                    .compute_scale = 77); /* CUBLAS_COMPUTE_32F_FAST_TF32 */
    CHECK_UINT(work.type, WORK_TF32);
}

TEST(a_convolution_is_read_from_its_text)
{
    struct work work =
        DESCRIBE(CONVOLUTION,
                 "x=8,384,14,14 xs=75264,1,5376,384 xt=bfloat16 w=384,1,7,7 "
                 "ws=49,1,7,1 wt=bfloat16 y=8,384,14,14 "
                 "ys=75264,1,5376,384 yt=bfloat16 pad=3,3 stride=1,1 "
                 "dilation=1,1 groups=384 layout=nhwc math=tensor",
                 .type = 9, .engine = 1);

    CHECK_UINT(work.family, WORK_CONVOLUTION_FORWARD);
    CHECK_UINT(work.type, WORK_BF16);
    CHECK_UINT(work.convolution.groups, 384);
    CHECK_UINT(work.convolution.r, 7);
    CHECK_UINT(work.convolution.pad_w, 3);
    CHECK_UINT(work.convolution.layout, WORK_NHWC);
    CHECK_UINT((uint64_t)work.flops, UINT64_C(2) * 8 * 384 * 14 * 14 * 49);
    CHECK_MOVED(work, 2 * (8 * 384 * 14 * 14 + 384 * 49),
                2 * 8 * 384 * 14 * 14);
}

TEST(causal_attention_does_half_and_a_diagonal)
{
    struct work work =
        DESCRIBE(ATTENTION,
                 "q=8,32,512,64 qs=1,1,1,1 qt=bfloat16 k=8,8,512,64 "
                 "kt=bfloat16 v=8,8,512,64 vt=bfloat16 o=8,32,512,64 "
                 "ot=bfloat16 causal=1 window=0 padding=0 bias=0 dropout=0",
                 .type = 9);

    CHECK_UINT(work.family, WORK_ATTENTION_FORWARD);
    CHECK_UINT(work.attention.kv_heads, 8);
    CHECK(work.attention.causal);
    CHECK_UINT((uint64_t)work.flops,
               UINT64_C(4) * 64 * 8 * 32 * (512 * 513 / 2));
    CHECK_MOVED(work, 2 * 8 * 512 * 64 * (32 + 8 + 8),
                2 * 8 * 512 * 64 * 32 + 4 * 8 * 32 * 512);
}

/* a.t() + b[1, n] of 1000 x 777 fp32: one read across, one broadcast. */
TEST(a_strided_kernel_reads_each_element_once)
{
    static const char name[] =
        "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_imp"
        "l_nocast<at::native::CUDAFunctor_add<float> >(at::TensorIteratorBase&,"
        " at::native::CUDAFunctor_add<float> const&)::{lambda(int)#1}>(int, X)";
    const struct trace_strided out = {777000, 4, 4}, across = {777000, 3108, 4},
                               row = {777, 4, 4};
    struct work work = describe_launch(
        name, TRACE_RULE_STRIDED,
        WORDS(777000, 3, trace_strided_pack(&out), trace_strided_pack(&across),
              trace_strided_pack(&row)),
        3036);

    CHECK_UINT(work.family, WORK_STRIDED);
    CHECK_MOVED(work, 4 * 777000 + 4 * 777, 4 * 777000);
    work = describe_launch(name, TRACE_RULE_STRIDED,
                           WORDS(777000, 3, trace_strided_pack(&out),
                                 trace_strided_pack(&out),
                                 trace_strided_pack(&out)),
                           3036);
    CHECK_UINT(work.family, WORK_STRIDED);
}

TEST(casts_have_the_sizes_of_their_tensors)
{
    struct work work = describe_launch(
        "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_a"
        "dd<float>, std::array<char*, 3ul>, 4, TrivialOffsetCalculator<2, unsig"
        "ned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory"
        "::LoadWithCast<2>, at::native::memory::StoreWithCast<1> >(int, X)",
        TRACE_RULE_ELEMENTWISE, WORDS(1000, 3, 0x020404), 2);

    CHECK_MOVED(work, 6000, 4000);
}

TEST(radix_sorts_move_keys_and_values_of_their_types)
{
    struct work work = describe_launch(
        "void cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<cub::P, (c"
        "ub::SortOrder)0, __nv_bfloat16, at::cuda::cub::detail::OpaqueType<8>, "
        "unsigned long long, int>(X)",
        TRACE_RULE_SIZES, WORDS(1000), 1);

    CHECK_UINT(work.family, WORK_SORT);
    CHECK_MOVED(work, 10000, 10000);
    work = describe_launch(
        "void cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<cub::P, (c"
        "ub::SortOrder)0, int, cub::NullType, unsigned long long, int>(X)",
        TRACE_RULE_SIZES, WORDS(1000), 1);
    CHECK_MOVED(work, 4000, 4000);
}

#define INFO(type)                                                             \
    "at::cuda::detail::TensorInfo<" type ", unsigned int>, unsigned int, "

TEST(segments_are_sorted_by_their_size_and_number)
{
    struct work work = describe_launch(
        "void cub::detail::radix_sort::DeviceSegmentedRadixSortKernel<cub::P, t"
        "rue, (cub::SortOrder)0, c10::Half, long, at::native::(anonymous namesp"
        "ace)::offset_t, at::native::(anonymous namespace)::offset_t, int>(c10:"
        ":Half const*, c10::Half*, long const*, long*, at::native::(anonymous n"
        "amespace)::offset_t, at::native::(anonymous namespace)::offset_t, int,"
        " int, int)",
        TRACE_RULE_SIZES, WORDS(5000, 5000, 200, 0, 6), 200);

    CHECK_UINT(work.family, WORK_SORT);
    CHECK_UINT(work_variant(&work), WORK_SORT_BLOCKS);
    CHECK_MOVED(work, 10000000, 10000000);
}

TEST(short_rows_are_sorted_in_place)
{
    struct work work = describe_launch(
        "void at::native::radixSortKVInPlace<2, -1, 32, 4, float, long, unsigne"
        "d int>(" INFO("float") "unsigned int, unsigned int, " INFO("long") "bo"
        "ol)",
        TRACE_RULE_SIZES, WORDS(300, 300, 100, 1, 300, 1), 300);

    CHECK_UINT(work_variant(&work), WORK_SORT_BLOCKS);
    CHECK_UINT(work.elements, 30000);
    CHECK_MOVED(work, 360000, 360000);
}

TEST(top_k_reads_all_and_writes_k_values_and_indices)
{
    struct work work = describe_launch(
        "void at::native::sbtopk::gatherTopK<c10::BFloat16, unsigned int, 2, fa"
        "lse>(" INFO("c10::BFloat16 const") "unsigned int, bool, unsigned int, "
        "unsigned int, " INFO("c10::BFloat16") INFO("long") "c10::BFloat16*)",
        TRACE_RULE_SIZES, WORDS(1000, 64, 8, 1000, 1, 1000, 1, 1000), 1000);

    CHECK_UINT(work.family, WORK_SORT);
    CHECK_UINT(work_variant(&work), WORK_SORT_SELECT);
    CHECK_STR(work_variant_name(WORK_SORT, WORK_SORT_SELECT), "select");
    CHECK_MOVED(work, 128000, 80000);
    /* k larger than a row: other arguments than these */
    work = describe_launch("gatherTopK<float>()", TRACE_RULE_SIZES,
                           WORDS(1000, 64, 65, 1000), 1000);
    CHECK_UINT(work.source, WORK_UNKNOWN);
    work = describe_launch(
        "at::native::mbtopk::computeDigitCumSum(short*, unsigned int*, unsigned"
        " int)",
        TRACE_RULE_SIZES, WORDS(7), 3);
    CHECK_MOVED(work, 7 * 3 * 512, 3 * 1024);
}

TEST(layer_norm_has_a_block_a_row)
{
    struct work work = describe_launch(
        "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_v"
        "ectorized<c10::BFloat16, float, false>(c10::BFloat16 const*, c10::BFlo"
        "at16 const*, float const*, float const*, c10::BFloat16 const*, c10::BF"
        "loat16*, int)",
        TRACE_RULE_SIZES, WORDS(768), 4096);

    CHECK_UINT(work.family, WORK_NORM_BACKWARD);
    CHECK_UINT(work.rows.rows, 4096);
    CHECK_UINT(work.rows.columns, 768);
    CHECK_MOVED(work, 2 * (2 * 4096 * 768 + 768) + 8 * 4096, 2 * 4096 * 768);
}

TEST(weight_norm_goes_over_its_weights_twice)
{
    struct work work = describe_launch(
        "void at::native::(anonymous namespace)::weight_norm_fwd_last_dim_kerne"
        "l<float, float>(float*, float*, float const*, float const*, int, int)",
        TRACE_RULE_SIZES, WORDS(128, 768 * 48), 8);

    CHECK_UINT(work.family, WORK_NORM_FORWARD);
    CHECK_UINT(work.rows.rows, 768 * 48);
    CHECK_UINT(work.rows.columns, 128);
    CHECK_MOVED(work, 8 * 768 * 48 * 128 + 4 * 128, 4 * 768 * 48 * 128);
    work = describe_launch(
        "void at::native::(anonymous namespace)::weight_norm_bwd_first_dim_kern"
        "el<float, float>(float*, float*, float const*, float const*, float con"
        "st*, float const*, int)",
        TRACE_RULE_SIZES, WORDS(512), 64);
    CHECK_UINT(work.family, WORK_NORM_BACKWARD);
    CHECK_UINT(work.rows.rows, 64);
    CHECK_MOVED(work, 16 * 64 * 512, 4 * 64 * 512);
}

/* Type of execution, one more than its number; a bit for real numbers. */
#define FFT(rank, type, real)                                                  \
    ((uint64_t)(rank) | (1 + (uint64_t)(type) + ((uint64_t)(real) << 16)) << 32)

TEST(transforms_pass_over_memory_for_each_dimension)
{
    struct work work = DESCRIBE_CALL("cufftXtExec", .a = FFT(1, 4, 0),
                                     .b = 1024, .e = 100, .f = UINT64_MAX);

    CHECK_UINT(work.source, WORK_EXACT);
    CHECK_UINT(work.type, WORK_FP32);
    CHECK_MOVED(work, 100 * 1024 * 8, 100 * 1024 * 8);
    CHECK_UINT((uint64_t)work.flops, 5 * 100 * 1024 * 10);
    work = DESCRIBE_CALL("cufftXtExec", .a = FFT(1, 5, 1), .b = 1000, .e = 7,
                         .f = UINT64_MAX); /* forward: real to complex */
    CHECK_UINT(work.type, WORK_FP64);
    CHECK_MOVED(work, 7 * 1000 * 8, 7 * 501 * 16);
    work = DESCRIBE_CALL("cufftExecC2R", .a = FFT(2, 4, 1), .b = 64, .c = 128,
                         .e = 3, .f = 1);
    CHECK_MOVED(work, 2 * 3 * 64 * 65 * 8, 3 * 64 * (65 * 8 + 128 * 4));
    work = DESCRIBE_CALL("cufftXtExec", .a = 1, .b = 1024, .e = 100);
    CHECK_UINT(work.source, WORK_UNKNOWN); /* recorded before types were */
}

TEST(factorisations_compute_as_much_as_lapack)
{
    struct work work = DESCRIBE_CALL("cusolverDnSgetrf", .a = 300, .b = 300);

    CHECK_UINT(work.source, WORK_GUESSED);
    CHECK_UINT((uint64_t)work.flops, 2 * 300 * 300 * 300 / 3);
    CHECK_MOVED(work, 2 * 4 * 300 * 300, 0);
    work = DESCRIBE_CALL("cusolverDnZpotrfBatched", .a = 30, .b = 30, .d = 64,
                         .e = 5);
    CHECK_UINT((uint64_t)work.flops, 64 * 4 * 9000);
    work = DESCRIBE_CALL("cusolverDnDgetrs", .a = 100, .b = 100, .c = 7,
                         .e = 1);
    CHECK_UINT((uint64_t)work.flops, 2 * 100 * 100 * 7);
    CHECK_MOVED(work, 8 * (100 * 100 + 2 * 100 * 7), 0);
    work = DESCRIBE_CALL("cusolverDnSgeqrf", .a = 600, .b = 300);
    CHECK_UINT((uint64_t)work.flops, 2 * 600 * 300 * 300 - 2 * 9000000);
    work = DESCRIBE_CALL("cusolverDnCreate", .a = 3);
    CHECK_UINT(work.source, WORK_UNKNOWN);
}

TEST(sparse_products_count_what_is_stored)
{
    struct work work = DESCRIBE_CALL("cusparseSpMM", .a = 1000, .b = 500,
                                     .c = 20000, .d = 64);

    CHECK_UINT((uint64_t)work.flops, 2 * 20000 * 64);
    CHECK_MOVED(work, 20000 * 12 + 1000 * 8 + 500 * 64 * 4, 1000 * 64 * 4);
    work = DESCRIBE_CALL("cusparseSpMM_preprocess", .a = 1000, .b = 500,
                         .c = 20000, .d = 64);
    CHECK_UINT(work.source, WORK_UNKNOWN);
}

/* Two layers of an LSTM, 10 tokens, 32 inputs, 64 cells. */
TEST(a_recurrent_network_has_two_products_for_each_layer)
{
    struct work work =
        describe_named(OP_LIBRARY_CALL, TRACE_LIBRARY_CALL,
                       TRACE_WORDS(LIBRARY_CALL, .a = 10, .b = 32, .c = 64,
                                   .d = 2, .e = 1, .f = 4),
                       TRACE_WORD_COUNT(LIBRARY_CALL),
                       "mode=lstm type=float length=5 batch=2 math=plain",
                       "rnn forward training");
    uint64_t weights = 4 * 64 * (32 + 64) + 4 * 64 * (64 + 64);

    CHECK_UINT((uint64_t)work.flops, 2 * 10 * weights);
    CHECK_MOVED(work, 4 * (weights + 10 * (32 + 128)), 4 * 10 * 2 * 64 * 4);
    CHECK(work.is_recurrent);
    CHECK_UINT(work.source, WORK_EXACT);
    CHECK_UINT(work.type, WORK_FP32);
    CHECK_UINT(work.recurrent.steps, 5);
    CHECK_UINT(work.recurrent.directions, 1);
    CHECK_UINT(work.recurrent.pass, WORK_PASS_FORWARD);
}

static uint32_t launches_of(const char *text, const char *name)
{
    return describe_named(OP_LIBRARY_CALL, TRACE_LIBRARY_CALL,
                          TRACE_WORDS(LIBRARY_CALL, .a = 8192, .b = 1024,
                                      .c = 1024, .d = 2, .e = 1, .f = 4),
                          TRACE_WORD_COUNT(LIBRARY_CALL), text, name)
        .launches;
}

/* The calls of an LSTM on an H200: 805 and 816 launches. */
TEST(a_recurrent_network_launches_what_it_launches)
{
    const char *plain = "mode=lstm type=float length=128 batch=64 math=tensor";
    const char *kept = "mode=lstm type=half length=128 batch=64 math=tensor "
                       "kernel=persistent";

    CHECK_NEAR(launches_of(plain, "rnn forward training"), 805, 0.02);
    CHECK_NEAR(launches_of(plain, "rnn backward data"), 816, 0.03);
    CHECK(launches_of(plain, "rnn backward weights") < 10);
    CHECK(launches_of(kept, "rnn forward training") < 10);
    CHECK_UINT(launches_of("", "cusolverDnSgetrf"), 0);
}

TEST(bad_fields_do_no_harm)
{
    static const char *const calls[] = {"cufftXtExec", "cusolverDnSgesvd",
                                        "cusparseSpMM", "rnn backward data"};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct work work = DESCRIBE_CALL(
            calls[i], .a = UINT64_MAX >> 30 << 2 | 3, .b = UINT64_MAX,
            .c = UINT64_MAX, .d = UINT64_MAX, .e = UINT64_MAX,
            .f = UINT64_MAX);
        DESCRIBE_CALL(calls[i], .a = 0);
        DESCRIBE_CALL(calls[i], .a = FFT(3, 4, 1), .b = UINT64_MAX,
                      .c = UINT64_MAX, .e = 0, .f = 0);
        CHECK(!(work.flops < 0));
    }
    for (unsigned kind = 0; kind < OP_KINDS; kind++) {
        uint64_t all[24];

        memset(all, 255, sizeof all);
        describe((enum op_kind)kind, (enum trace_kind)0, NULL, 0, NULL);
        for (unsigned r = TRACE_LAUNCH; r <= TRACE_COLLECTIVE; r++) {
            enum trace_kind record = (enum trace_kind)r;
            enum op_kind op = (enum op_kind)kind;

            describe(op, record, all, 24, "");
            describe(op, record, all, 24, "x= w=,, y=9999999999999999999");
            describe(op, record, all, 24, "q=1,2,3,4 k=0,0,0,0 v=");
        }
    }
}

TEST(arguments_that_are_sizes_are_found)
{
    struct work_kernel kernel;

    work_kernel_read(
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::"
        "BFloat16, float, unsigned int, 1, 8, bool>(at::cuda::detail::TensorInf"
        "o<c10::BFloat16 const, unsigned int>, at::cuda::detail::TensorInfo<c10"
        "::BFloat16, unsigned int>, at::cuda::detail::TensorInfo<bool, unsigned"
        " int>, unsigned int, float, at::PhiloxCudaState)",
        &kernel);
    CHECK_UINT(kernel.size_count, 4);
    CHECK_UINT(kernel.sizes[0].kind, WORK_SIZE_INFO);
    CHECK_UINT(kernel.sizes[3].kind, WORK_SIZE_INT);
    CHECK_UINT(kernel.sizes[3].argument, 3);
}

/* The same, of a grid and blocks of two dimensions. */
static struct work describe_grid(const char *name, enum trace_rule rule,
                                 const uint64_t words[TRACE_LAUNCH_WORDS],
                                 const uint32_t grid[2],
                                 const uint32_t block[2])
{
    struct trace_launch launch = {.grid_x_y = PACK(grid[0], grid[1]),
                                  .grid_z_block_x = PACK(1, block[0]),
                                  .block_y_z = PACK(block[1], 1),
                                  .shared_bytes_rule = PACK(0, (uint32_t)rule)};
    const struct op op = {.kind = OP_LAUNCH,
                          .record = TRACE_LAUNCH,
                          .field_count = TRACE_WORD_COUNT(LAUNCH),
                          .fields = (const uint64_t *)&launch};
    struct work work;

    memcpy(&launch.a, words, TRACE_LAUNCH_WORDS * sizeof *words);
    work_describe(&op, name, &work);
    return work;
}

TEST(sums_say_how_many_blocks_share_a_result)
{
    const char *name = "at::native::reduce_kernel<128, 4, at::native::ReduceOp<"
                       "c10::BFloat16, at::native::sum, unsigned int, "
                       "c10::BFloat16, 4, 4> >()";
    struct work work =
        describe_grid(name, TRACE_RULE_REDUCTION, WORDS(200704, 128, 0, 256),
                      (uint32_t[]){1, 2112}, (uint32_t[]){32, 4});

    CHECK_UINT(work.rate, WORK_RATE_SUM_OUTER);
    CHECK_UINT(work.rows.partials, 528);
    work = describe_grid(name, TRACE_RULE_REDUCTION, WORDS(3136, 1024, 0, 2),
                         (uint32_t[]){64, 1}, (uint32_t[]){32, 16});
    CHECK_UINT(work.rate, WORK_RATE_SUM_INNER);
    CHECK_UINT(work.rows.partials, 0);
}

TEST(interpolation_and_boxes_have_their_sizes)
{
    struct work work = describe_launch(
        "void at::native::(anonymous namespace)::upsample_nearest2d_out_frame<"
        "float, &at::native::nearest_neighbor_compute_source_index>(float const"
        "*, float*, unsigned long, unsigned long, unsigned long, unsigned long,"
        " unsigned long, float, float)",
        TRACE_RULE_SIZES, WORDS(1024, 128, 128, 256, 256), 32768);

    CHECK_UINT(work.family, WORK_POOL);
    CHECK_UINT(work.elements, 8 * 128 * 256 * 256);
    CHECK_MOVED(work, 4 * 8 * 128 * 128 * 128, 4 * 8 * 128 * 256 * 256);
    work = describe_launch("vision::ops::(anonymous namespace)::gather_keep_fro"
                           "m_mask(bool*, unsigned long long const*, int)",
                           TRACE_RULE_SIZES, WORDS(8658), 1);
    CHECK_UINT(work.elements, 8658);
    CHECK_UINT(work.rate, WORK_RATE_BOXES);
    work = describe_launch("vision::ops::(anonymous namespace)::nms_kernel_impl"
                           "<float>(int, double, float const*, unsigned long lo"
                           "ng*)",
                           TRACE_RULE_SIZES, WORDS(8658), 18496);
    CHECK_UINT(work.elements, 8658 * 8658);
}
