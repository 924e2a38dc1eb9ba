/* SPDX-License-Identifier: Apache-2.0
 * Attention: FlashAttention 2's kernels and PyTorch's memory-efficient ones by
 * their parameters (TRACE_RULE_ATTENTION), cuDNN's by its descriptors. */
#include "kernels/work_internal.h"

/* Where the readers below leave what they found among a kernel's numbers. */
enum { DROPS, CAUSAL = 4, HEAD_SIZE, TILE_Q, TILE_K };

/* Pairs of a query and a key that it sees. Causal: the last query sees all. */
static double visible_pairs(double queries, double keys, bool causal)
{
    if (!causal)
        return queries * keys;
    if (queries <= keys)
        return queries * (keys - queries) + queries * (queries + 1) / 2;
    return keys * (keys + 1) / 2;
}

void work_attention_set(const struct work_attention_shape *a, bool backward,
                        struct work *work)
{
    double heads = (double)a->batch * (double)a->heads;
    double kv_heads = (double)a->batch * (double)a->kv_heads;
    double pairs =
        heads * visible_pairs((double)a->queries, (double)a->keys, a->causal);
    double q = heads * (double)a->queries * (double)a->head_size;
    double k = kv_heads * (double)a->keys * (double)a->head_size;
    double v = kv_heads * (double)a->keys * (double)a->value_size;
    double o = heads * (double)a->queries * (double)a->value_size;
    double statistics = 4 * heads * (double)a->queries; /* log-sum-exp */
    double bytes = work->element_bytes;

    work->attention = *a;
    work->elements = (uint64_t)o;
    if (!backward) {
        work->family = WORK_ATTENTION_FORWARD;
        work->flops = 2 * pairs * (double)(a->head_size + a->value_size);
        work->read_bytes = bytes * (q + k + v);
        work->written_bytes = bytes * o + statistics;
        return;
    }
    /* five products instead of two: S again, dV, dP, dQ, dK */
    work->family = WORK_ATTENTION_BACKWARD;
    work->flops =
        2 * pairs * (3.0 * (double)a->head_size + 2.0 * (double)a->value_size);
    work->read_bytes = bytes * (q + k + v + 2 * o) + statistics;
    /* PyTorch's flash kernels write dK and dV of each query head */
    double copies = a->kernel == WORK_ATTENTION_FLASH2 ? heads / kv_heads : 1;
    work->written_bytes = bytes * (q + copies * (k + v));
}

/* flash_fwd_kernel<Flash_fwd_kernel_traits<head size, tile of queries, tile of
 * keys, ..., type, ...>, dropout, causal, ...>; flash_fwd_splitkv_kernel has
 * no flag for dropout. */
void work_read_flash(const struct cxx_name *name, struct work_kernel *kernel)
{
    bool split = cxx_begins(name->base, "flash_fwd_splitkv");
    enum work_type type = WORK_BF16;
    struct cxx_name traits;

    kernel->numbers[CAUSAL] = kernel->numbers[split ? 0 : 1];
    if (!name->arguments.count)
        return;
    cxx_split(name->arguments.part[0], &traits);
    if (!traits.arguments.count) /* the backward's first kernel */
        cxx_split(name->arguments.part[1], &traits);
    for (unsigned i = 0, n = HEAD_SIZE; i < traits.arguments.count; i++) {
        uint32_t bytes = work_type_read(traits.arguments.part[i], &type);

        if (bytes && !kernel->type_bytes[0])
            kernel->type_bytes[0] = (uint8_t)bytes;
        else if (n < WORK_NUMBERS_MAX &&
                 cxx_number(traits.arguments.part[i], &kernel->numbers[n]))
            n++;
    }
    kernel->type = (uint8_t)type;
}

/* fmha_cutlassF_f32_...(PyTorchMemEffAttention::AttentionKernel<type, arch,
 * aligned, queries of a block, keys of a block, ...>::Params). Of the backward
 * there is one kernel with dropout and one without, of the forward one. */
void work_read_efficient(const struct cxx_name *name,
                         struct work_kernel *kernel)
{
    enum work_type type = WORK_FP32;
    struct cxx_name attention;
    int32_t numbers[WORK_NUMBERS_MAX] = {0};
    unsigned count = 0;

    if (!name->parameters.count)
        return;
    cxx_split(name->parameters.part[0], &attention);
    for (uint32_t i = 0; i < attention.arguments.count; i++) {
        uint32_t bytes = work_type_read(attention.arguments.part[i], &type);

        if (bytes)
            kernel->type_bytes[0] = (uint8_t)bytes;
        else if (count < WORK_NUMBERS_MAX &&
                 cxx_number(attention.arguments.part[i], &numbers[count]))
            count++;
    }
    bool backward = cxx_is(attention.base, "AttentionBackwardKernel");
    kernel->numbers[TILE_Q] = numbers[backward ? 3 : 1];
    kernel->numbers[TILE_K] = numbers[backward ? 4 : 2];
    kernel->numbers[DROPS] = cxx_find(name->base, "_dropout_") != NULL;
    kernel->type = (uint8_t)type;
}

static uint64_t low_half(uint64_t word)
{
    return word & UINT32_MAX;
}

static bool shape_read(const struct work_kernel *kernel,
                       const struct work_launch *launch,
                       struct work_attention_shape *a)
{
    const uint64_t *w = launch->words;

    if (launch->rule != TRACE_RULE_ATTENTION || !kernel->type_bytes[0])
        return false;
    *a = (struct work_attention_shape){
        .batch = low_half(w[3]),
        .heads = low_half(w[1]),
        .kv_heads = w[1] >> 32,
        .queries = low_half(w[0]),
        .keys = w[0] >> 32,
        .head_size = low_half(w[2]),
        .value_size = w[2] >> 32,
        .padded_head_size = (uint32_t)kernel->numbers[HEAD_SIZE],
        .tile_q = (uint32_t)kernel->numbers[TILE_Q],
        .tile_k = (uint32_t)kernel->numbers[TILE_K],
    };
    /* sequences of several lengths count as if all had their mean */
    if (w[4] && a->batch && w[4] < a->batch * a->queries) {
        uint64_t mean = (w[4] + a->batch - 1) / a->batch;

        a->keys = a->keys * mean / a->queries;
        a->queries = mean;
    }
    return a->batch && a->heads && a->kv_heads && a->queries && a->keys;
}

static void set_type(const struct work_kernel *kernel, struct work *work)
{
    work->type = (enum work_type)kernel->type;
    work->element_bytes = kernel->type_bytes[0];
}

bool work_flash(const struct work_kernel *kernel,
                const struct work_launch *launch, struct work *work)
{
    struct work_attention_shape shape;

    if (!shape_read(kernel, launch, &shape))
        return false;
    shape.causal = kernel->numbers[CAUSAL];
    shape.kernel = WORK_ATTENTION_FLASH2;
    set_type(kernel, work);
    work_attention_set(&shape, work->family == WORK_ATTENTION_BACKWARD, work);
    return true;
}

/* flash_bwd_dot_do_o_kernel: dO times O, summed over each head; and
 * flash_bwd_convert_dq_kernel, flash_fwd_splitkv_combine_kernel: fp32 partial
 * results to their type. */
bool work_flash_rows(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work)
{
    struct work_attention_shape a;
    bool reduces = work->family == WORK_REDUCE;

    if (!shape_read(kernel, launch, &a))
        return false;
    set_type(kernel, work);
    work->rows =
        (struct work_rows){a.batch * a.heads * a.queries, a.head_size, 1, 0};
    work->elements = work->rows.rows * a.head_size;
    double elements = (double)work->elements, bytes = work->element_bytes;
    work->flops = elements;
    work->read_bytes = elements * (reduces ? 2 * bytes : 4);
    work->written_bytes =
        reduces ? 4 * (double)work->rows.rows : elements * bytes;
    return true;
}

bool work_efficient(const struct work_kernel *kernel,
                    const struct work_launch *launch, struct work *work)
{
    struct work_attention_shape shape;

    if (!shape_read(kernel, launch, &shape))
        return false;
    shape.causal = launch->words[3] >> 32;
    shape.dropout = kernel->numbers[DROPS];
    shape.kernel = WORK_ATTENTION_EFFICIENT;
    set_type(kernel, work);
    work_attention_set(&shape, work->family == WORK_ATTENTION_BACKWARD, work);
    return true;
}
