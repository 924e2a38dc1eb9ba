/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/operator.h"

#include <string.h>

#include "check.h"

/* An operator and its kernels, one after the other. */
struct asked {
    struct operator_call call;
    struct operator_progress progress;
    struct trace_launch launch;
    struct work work;
};

static bool ask_read(struct asked *a, const char *name, const char *dims,
                     const char *types, const char *concrete)
{
    const char *const texts[4] = {[OPERATOR_DIMS] = dims,
                                  [OPERATOR_TYPES] = types,
                                  [OPERATOR_CONCRETE] = concrete};

    memset(a, 0, sizeof *a);
    return operator_read(&a->call, name, texts);
}

static bool ask(struct asked *a, const char *kernel, uint32_t grid,
                uint32_t block)
{
    struct work_kernel read;

    a->launch = (struct trace_launch){
        .grid_x_y = trace_pack(grid, 1),
        .grid_z_block_x = trace_pack(1, block),
        .block_y_z = trace_pack(1, 1),
    };
    work_kernel_read(kernel, &read);
    if (!operator_describe(&a->call, &a->progress, &read, kernel, &a->launch))
        return false;
    const struct op op =
        op_of_record(TRACE_LAUNCH, (const uint64_t *)&a->launch);
    work_describe(&op, kernel, &a->work);
    return a->work.source == WORK_EXACT || a->work.source == WORK_RULE;
}

#define ADDMM "[c10::BFloat16,c10::BFloat16,c10::BFloat16,Scalar,Scalar]"

TEST(a_product_is_described_by_its_shapes)
{
    struct asked a;

    CHECK(ask_read(&a, "aten::addmm", "[[512],[141,512],[512,1024],[],[]]",
                   ADDMM, NULL));
    CHECK_UINT(a.call.count, 5);
    CHECK(ask(&a, "nvjet_x_TNT", 8, 384));
    CHECK_UINT(a.work.family, WORK_GEMM);
    CHECK_UINT(a.work.type, WORK_BF16);
    CHECK_UINT(a.work.gemm.m, 141);
    CHECK_UINT(a.work.gemm.k, 512);
    CHECK_UINT(a.work.gemm.n, 1024);
    CHECK(a.work.gemm.transpose_b && !a.work.gemm.transpose_a);
    CHECK(a.work.flops == 2.0 * 141 * 512 * 1024);
    CHECK(!a.work.is_part);
    CHECK(ask(&a, "void cublasLt::splitKreduce_kernel<32>()", 8, 384));
    CHECK(a.work.is_part);
    CHECK(ask_read(&a, "aten::bmm", "[[141,512],[512,1024]]", ADDMM, NULL));
    CHECK(!ask(&a, "gemm", 8, 384));
}

TEST(a_product_s_layout_is_in_its_kernel_s_name)
{
    static const struct {
        const char *kernel;
        bool a, b;
    } kernels[] = {{"ampere_sgemm_128x64_tn", false, true},
                   {"ampere_sgemm_128x64_nt", true, false},
                   {"volta_sgemm_32x128_nn", false, false},
                   {"cutlass_80_s161616gemm_bf16_128x2_tn_align8", false, true},
                   {"nvjet_tst_128x256_64x4_h_bz_coopA_NTT", true, false},
                   {"triton_mm", false, false}};

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        struct asked a;
        CHECK(ask_read(&a, "aten::mm", "[[8,4],[4,2]]", "[float,float]", NULL));
        CHECK(ask(&a, kernels[i].kernel, 1, 32));
        CHECK_UINT(a.work.gemm.transpose_a, kernels[i].a);
        CHECK_UINT(a.work.gemm.transpose_b, kernels[i].b);
    }
}

/* nchwToNhwc and the like belong to the pass around them. */
TEST(a_convolution_s_backward_has_two_passes)
{
    struct asked a;

    CHECK(ask_read(&a, "aten::convolution_backward",
                   "[[4,64,56,56],[4,32,112,112],[64,32,3,3],[],[],[],[],[],[]"
                   ",[],[]]",
                   "[float,float,float,ScalarList,ScalarList,ScalarList,"
                   "ScalarList,Scalar,ScalarList,Scalar,ScalarList]",
                   "[-,-,-,[0],[2, 2],[1, 1],[1, 1],False,[0, 0],1,[True, True"
                   ", False]]"));
    operator_note(&a.progress, "nchwToNhwcKernel");
    operator_note(&a.progress, "sm80_xmma_wgrad_f32");
    CHECK(ask(&a, "nchwToNhwcKernel", 8, 256));
    CHECK_UINT(a.work.family, WORK_CONVOLUTION_DGRAD);
    CHECK_UINT(a.work.convolution.out_h, 56);
    CHECK_UINT(a.work.convolution.stride_h, 2);
    CHECK(!a.work.is_part);
    CHECK(ask(&a, "sm80_xmma_dgrad_tf32", 8, 256) && a.work.is_part);
    CHECK(ask(&a, "sm80_xmma_wgrad_tf32", 8, 256) && !a.work.is_part);
    CHECK_UINT(a.work.family, WORK_CONVOLUTION_WGRAD);
    CHECK_UINT(a.work.type, WORK_TF32);
    CHECK(ask(&a, "nhwcToNchwKernel", 8, 256) && a.work.is_part);
    CHECK(a.work.flops > 0);
    /* the filter's pass begins with its own transposes */
    memset(&a.progress, 0, sizeof a.progress);
    operator_note(&a.progress, "sm80_xmma_wgrad_f32");
    CHECK(ask(&a, "nchwToNhwcKernel", 8, 256) && !a.work.is_part);
    CHECK(ask(&a, "sm80_xmma_dgrad_tf32", 8, 256) && a.work.is_part);
    CHECK(ask(&a, "nhwcToNchwKernel", 8, 256) && a.work.is_part);
    CHECK_UINT(a.work.family, WORK_CONVOLUTION_DGRAD);
    CHECK(ask(&a, "nchwToNhwcKernel", 8, 256) && !a.work.is_part);
    CHECK_UINT(a.work.family, WORK_CONVOLUTION_WGRAD);
    CHECK(ask(&a, "sm80_xmma_wgrad_f32", 8, 256) && a.work.is_part);
    /* no name says which is the filter's, but that of its sum */
    memset(&a.progress, 0, sizeof a.progress);
    operator_note(&a.progress, "reduce_wgrad_nchw_helper");
    CHECK(ask(&a, "nchwToNhwcKernel", 8, 256) && !a.work.is_part);
    CHECK(ask(&a, "cutlass_tensorop_s1688gemm", 8, 256) && a.work.is_part);
    CHECK(ask(&a, "nhwcToNchwKernel", 8, 256) && a.work.is_part);
    CHECK(ask(&a, "cutlass_tensorop_s1688gemm", 8, 256) && !a.work.is_part);
    CHECK(ask(&a, "reduce_wgrad_nchw_helper", 8, 256) && a.work.is_part);
    CHECK_UINT(a.work.family, WORK_CONVOLUTION_WGRAD);
}

/* Both have their channels side by side. */
TEST(a_filter_of_1_x_1_has_a_layout)
{
    static const char *const strides[] = {
        "[[200704,3136,56,1],[64,1,1,1],[],[],[],[],[],[],[]]",
        "[[200704,1,3584,64],[64,1,64,64],[],[],[],[],[],[],[]]"};

    for (unsigned i = 0; i < 2; i++) {
        const char *const texts[4] = {
            "[[4,64,56,56],[256,64,1,1],[],[],[],[],[],[],[]]",
            "[float,float,ScalarList,ScalarList,ScalarList,Scalar,Scalar,"
            "Scalar,Scalar]",
            strides[i], "[-,-,[0, 0],[1, 1],[1, 1],1,False,False,True]"};
        struct asked a;
        memset(&a, 0, sizeof a);
        CHECK(operator_read(&a.call, "aten::cudnn_convolution", texts));
        CHECK(ask(&a, "sm80_xmma_fprop_tf32", 8, 256));
        CHECK_UINT(a.work.convolution.layout, i ? WORK_NHWC : WORK_NCHW);
    }
}

TEST(a_sum_has_the_dimensions_that_it_was_given)
{
    static const char kernel[] =
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
        "at::native::func_wrapper_t<float, x>, unsigned int, float, 4, 4> >()";
    struct asked a;

    CHECK(ask_read(&a, "aten::sum", "[[4096,768],[],[],[]]",
                   "[float,ScalarList,Scalar,-]", "[-,[0],True,-]"));
    CHECK(ask(&a, kernel, 24, 32));
    CHECK_UINT(a.work.rows.rows, 768);
    CHECK_UINT(a.work.rows.columns, 4096);
    CHECK(ask_read(&a, "aten::sum", "[[4096,768],[],[],[]]",
                   "[float,ScalarList,Scalar,-]", "[-,[-1],True,-]"));
    CHECK(ask(&a, kernel, 24, 32));
    CHECK_UINT(a.work.rows.rows, 4096);
}

TEST(attention_has_its_mask_and_its_dropout)
{
    struct asked a;

    CHECK(ask_read(&a, "aten::_cudnn_attention_forward",
                   "[[8,12,128,64],[8,4,256,64],[8,4,256,64]]",
                   "[c10::Half,c10::Half,c10::Half]",
                   "[-,-,-,-,-,-,128,256,True,0.1,True]"));
    a.call.count = 11;
    CHECK(ask(&a, "cudnn_generated_fort_native_sdpa_x", 8, 256));
    CHECK_UINT(a.work.family, WORK_ATTENTION_FORWARD);
    CHECK_UINT(a.work.attention.kv_heads, 4);
    CHECK_UINT(a.work.attention.queries, 128);
    CHECK_UINT(a.work.attention.keys, 256);
    CHECK(a.work.attention.causal && a.work.attention.dropout);
    CHECK(!a.work.attention.bias);
    CHECK(ask_read(&a, "aten::_cudnn_attention_forward",
                   "[[8,12,128,64],[8,4,256,64],[8,4,256,64],[1,12,128,256]]",
                   "[c10::Half,c10::Half,c10::Half,c10::Half]",
                   "[-,-,-,-,-,-,128,256,True,0.,False]"));
    a.call.count = 11;
    CHECK(ask(&a, "cudnn_generated_fort_native_sdpa_x", 8, 256));
    CHECK(a.work.attention.bias && !a.work.attention.causal);
}

#define LISTS(n, functor)                                                      \
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"       \
    "at::native::(anonymous namespace)::TensorListMetadata<" n ">, "           \
    "at::native::(anonymous namespace)::" functor "<float, " n ", " n ", 0>, " \
    "std::multiplies<float>, float>()"

/* Adam's second moment: v = v b + (1 - b) g g. */
TEST(a_gradient_that_is_squared_is_read_once)
{
    const double bytes = 320 * 65536.0 * 4;
    struct asked a;

    CHECK(ask_read(&a, "aten::_foreach_addcmul_", "[[],[],[],[]]",
                   "[TensorList,TensorList,TensorList,Scalar]", NULL));
    CHECK(ask(&a, LISTS("3", "PointwiseOpScalarFunctor"), 320, 512));
    CHECK(a.work.read_bytes == 2 * bytes && a.work.written_bytes == bytes);
    CHECK(ask_read(&a, "aten::_foreach_lerp_", "[[],[],[]]",
                   "[TensorList,TensorList,Scalar]", NULL));
    CHECK(ask(&a, LISTS("2", "TernaryOpScalarFunctor"), 320, 512));
    CHECK(a.work.read_bytes == 2 * bytes && a.work.written_bytes == bytes);
}

#define TO_FLOAT                                                               \
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_ker" \
    "nel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"    \
    "{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, "  \
    "2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, "                      \
    "TrivialOffsetCalculator<1, unsigned int>, "                               \
    "at::native::memory::LoadWithCast<1>, "                                    \
    "at::native::memory::StoreWithCast<1> >(int, at::native::direct_copy_ker"  \
    "nel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"    \
    "{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, "  \
    "2ul>, TrivialOffsetCalculator<1, unsigned int>, "                         \
    "TrivialOffsetCalculator<1, unsigned int>, "                               \
    "at::native::memory::LoadWithCast<1>, "                                    \
    "at::native::memory::StoreWithCast<1>)"
#define FILL                                                                   \
    "void at::native::vectorized_elementwise_kernel<4, "                       \
    "at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, "           \
    "at::native::FillFunctor<float>, std::array<char*, 1ul>)"
#define STRIDED                                                                \
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_" \
    "nocast<at::native::CUDAFunctor_add<float> >(at::TensorIteratorBase&, "    \
    "at::native::CUDAFunctor_add<float> const&)::{lambda(int)#1}>(int, "       \
    "at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float> >(" \
    "at::TensorIteratorBase&, at::native::CUDAFunctor_add<float> const&)::"    \
    "{lambda(int)#1})"

/* 1.6 billion elements, of which a launch has a quarter. */
TEST(a_tensor_beyond_2_gib_is_launched_in_parts)
{
    const double part = 32 * 1024 * 50257.0 / 4;
    struct asked a;

    CHECK(ask_read(&a, "aten::copy_", "[[32,1024,50257],[32,1024,50257],[]]",
                   "[float,c10::BFloat16,Scalar]", NULL));
    CHECK(ask(&a, TO_FLOAT, 804112, 128));
    CHECK(a.work.read_bytes == 2 * part && a.work.written_bytes == 4 * part);
    CHECK(ask_read(&a, "aten::fill_", "[[32768,50257],[]]", "[float,Scalar]",
                   NULL));
    CHECK(ask(&a, FILL, 402056, 128));
    CHECK(a.work.read_bytes == 0 && a.work.written_bytes == 4 * part);
    CHECK(ask_read(&a, "aten::add_", "[[32,1024,50257],[50257],[]]",
                   "[float,float,Scalar]", NULL));
    CHECK(ask(&a, STRIDED, 804112, 128));
    CHECK(a.work.written_bytes == 4 * part);
    CHECK(a.work.read_bytes >= 4 * part && a.work.read_bytes < 4.01 * part);
    /* 2 GiB less one element stay whole */
    CHECK(ask_read(&a, "aten::fill_", "[[536870911],[]]", "[float,Scalar]",
                   NULL));
    CHECK(ask(&a, FILL, 524288, 128));
    CHECK(a.work.written_bytes == 4 * 536870911.0);
}

TEST(lists_that_are_none_do_no_harm)
{
    static const char *const lists[] = {
        "",        "[",         "]",         "[[",      "[[]",
        "[[1,",    "[[1,2",     "[[-1,2]]",  "[[1e99]]", "[[a,b],[c]]",
        "[[[1]]]", "[,,,,]",    "[[1,2],,]", "[[1 2]]", "[[0,0],[0,0]]",
        "[[1,2,3,4,5,6,7,8,9,10]]", "[[99999999999,99999999999]]"};
    static const char *const names[] = {
        "aten::mm", "aten::cudnn_convolution", "aten::convolution_backward",
        "aten::_cudnn_rnn", "aten::_cudnn_attention_backward", "aten::sum",
        "aten::max_pool2d_with_indices", "aten::_softmax", "aten::cat"};
    static const char *const kernels[] = {
        "gemm", "void at::native::reduce_kernel<512, 1, R<float, x, int, "
                "float> >()",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, "
        "float, float>()",
        "void at::native::max_pool_forward_nchw<float>()",
        "void at::native::vectorized_elementwise_kernel<4, at::native::"
        "CUDAFunctor_add<float>, std::array<char*, 3ul> >()",
        "triton_poi_fused_0", "CatArrayBatchedCopy<float>()"};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
                struct asked a;
                if (ask_read(&a, names[n], lists[i], "[float,float]", lists[i]))
                    ask(&a, kernels[k], 4, 128);
            }
}

/* What is written is what is read, for each shape. */
TEST(words_have_all_of_a_work)
{
    struct trace_launch l = {.shared_bytes_rule =
                                 trace_pack(0, TRACE_RULE_WORK)};
    const struct op op = op_of_record(TRACE_LAUNCH, (const uint64_t *)&l);
    struct work work;

    for (unsigned head = 0; head < 512; head++) { /* any words do no harm */
        l.a = l.b = l.c = l.d = head * UINT64_C(0x123456789abcdef);
        l.h = head | UINT64_C(4) << 16 | (uint64_t)(head * 977) << 32;
        work_describe(&op, "gemm", &work);
        CHECK(work.family < WORK_FAMILIES);
    }
}
