/* SPDX-License-Identifier: Apache-2.0
 * Names and fields as PyTorch 2.11 on the fake device recorded them. */
#include "runtime/cost/work.h"

#include "check.h"

#define PACK(low, high) ((uint64_t)(high) << 32 | (low))

static struct work describe_launch(const char *name, enum trace_rule rule,
                                   uint64_t a, uint64_t b, uint64_t c,
                                   uint64_t d, uint32_t grid)
{
    const uint64_t fields[] = {1,
                               0,
                               0,
                               PACK(grid, 1),
                               PACK(1, 128),
                               PACK(1, 1),
                               PACK(0, (uint32_t)rule),
                               a,
                               b,
                               c,
                               d};
    const struct op op = {.kind = OP_LAUNCH,
                          .record = TRACE_LAUNCH,
                          .field_count = sizeof fields / sizeof *fields,
                          .fields = fields};
    struct work work;

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
        struct work work = describe_launch(
            elementwise[i].name, TRACE_RULE_ELEMENTWISE, 777000, 0, 0, 0, 1518);

        CHECK_UINT(work.family, elementwise[i].family);
        CHECK_UINT(work.source, WORK_RULE);
        CHECK_UINT(work.elements, 777000);
        CHECK_MOVED(work, 777000 * elementwise[i].read,
                    777000 * elementwise[i].written);
    }
}

TEST(an_unknown_kernel_is_said_to_be_unknown)
{
    struct work work =
        describe_launch("my_kernel", TRACE_RULE_NONE, 0, 0, 0, 0, 12);

    CHECK_UINT(work.family, WORK_OTHER);
    CHECK_UINT(work.source, WORK_UNKNOWN);
    CHECK_MOVED(work, 0, 0);
}

static struct work describe(enum op_kind kind, const uint64_t *fields,
                            uint32_t count, const char *text)
{
    const struct op op = {.kind = kind,
                          .field_count = count,
                          .fields = fields,
                          .text = text,
                          .text_bytes = text ? (uint32_t)strlen(text) : 0};
    struct work work;

    work_describe(&op, "", &work);
    return work;
}

#define DESCRIBE(kind, fields, text)                                           \
    describe(kind, fields, sizeof(fields) / sizeof *(fields), text)

/* torch.nn.functional.linear: x[4096, 768] with w[3072, 768], bf16. */
TEST(a_product_has_rows_first)
{
    const uint64_t fields[] = {1,
                               0,
                               0,
                               3072,
                               4096,
                               768,
                               1,
                               UINT64_C(0x000e000e000e000e),
                               PACK(68, 0),
                               PACK(1, 0),
                               PACK(768, 768),
                               PACK(3072, 3072),
                               0,
                               0,
                               0,
                               256,
                               0,
                               0,
                               0};
    struct work work = DESCRIBE(OP_GEMM, fields, NULL);

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

TEST(fp32_products_use_tensor_cores_where_allowed)
{
    uint64_t fields[] = {
        1, 0, 0, 64,  64, 64, 1, 0, PACK(68, 0), 0, PACK(64, 64), PACK(64, 64),
        0, 0, 0, 256, 0,  0,  0};

    CHECK_UINT(DESCRIBE(OP_GEMM, fields, NULL).type, WORK_FP32);
    fields[18] = 3; /* CUBLAS_TF32_TENSOR_OP_MATH */
    CHECK_UINT(DESCRIBE(OP_GEMM, fields, NULL).type, WORK_TF32);
    fields[18] = 0;
    fields[8] = PACK(77, 0); /* CUBLAS_COMPUTE_32F_FAST_TF32 */
    CHECK_UINT(DESCRIBE(OP_GEMM, fields, NULL).type, WORK_TF32);
}

TEST(a_convolution_is_read_from_its_text)
{
    const uint64_t fields[] = {1, 0, 0, 0, 9, 0, 0, 1};
    struct work work =
        DESCRIBE(OP_CONVOLUTION, fields,
                 "x=8,384,14,14 xs=75264,1,5376,384 xt=bfloat16 w=384,1,7,7 "
                 "ws=49,1,7,1 wt=bfloat16 y=8,384,14,14 "
                 "ys=75264,1,5376,384 yt=bfloat16 pad=3,3 stride=1,1 "
                 "dilation=1,1 groups=384 layout=nhwc math=tensor");

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
    const uint64_t fields[] = {1, 0, 0, 0, 9, 0};
    struct work work =
        DESCRIBE(OP_ATTENTION, fields,
                 "q=8,32,512,64 qs=1,1,1,1 qt=bfloat16 k=8,8,512,64 "
                 "kt=bfloat16 v=8,8,512,64 vt=bfloat16 o=8,32,512,64 "
                 "ot=bfloat16 causal=1 window=0 padding=0 bias=0 dropout=0");

    CHECK_UINT(work.family, WORK_ATTENTION_FORWARD);
    CHECK_UINT(work.attention.kv_heads, 8);
    CHECK(work.attention.causal);
    CHECK_UINT((uint64_t)work.flops,
               UINT64_C(4) * 64 * 8 * 32 * (512 * 513 / 2));
    CHECK_MOVED(work, 2 * 8 * 512 * 64 * (32 + 8 + 8),
                2 * 8 * 512 * 64 * 32 + 4 * 8 * 32 * 512);
}

TEST(bad_fields_do_no_harm)
{
    for (unsigned kind = 0; kind < OP_KINDS; kind++) {
        const uint64_t none[1] = {0};
        uint64_t all[24];

        memset(all, 255, sizeof all);
        describe((enum op_kind)kind, none, 0, NULL);
        describe((enum op_kind)kind, all, 24, "");
        describe((enum op_kind)kind, all, 24, "x= w=,, y=9999999999999999999");
        describe((enum op_kind)kind, all, 24, "q=1,2,3,4 k=0,0,0,0 v=");
    }
}
