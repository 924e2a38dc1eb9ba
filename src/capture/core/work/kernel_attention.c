/* SPDX-License-Identifier: Apache-2.0
 * The shapes in the parameters of PyTorch's attention kernels: FlashAttention
 * 2's Flash_fwd_params, which Flash_bwd_params begin with, and the Params of
 * the memory-efficient kernels (transformers/cuda/mem_eff_attention of 2.5 to
 * 2.15). */
#include <string.h>

#include "capture/core/work/kernel.h"

static int32_t int_at(const char *params, size_t offset)
{
    int32_t value;

    memcpy(&value, params + offset, sizeof value);
    return value;
}

static uint64_t pack_words(int32_t low, int32_t high)
{
    return trace_pack((uint32_t)low, (uint32_t)high);
}

/* flash.h: three addresses, nine strides, then the numbers of heads. */
#define FLASH_HEADS    96
#define FLASH_KV_HEADS 100

/* The sizes follow more addresses and strides, how many depends on the
 * version: int b, seqlen_q, seqlen_k, seqlen_knew, d, seqlen_q_rounded,
 * seqlen_k_rounded, d_rounded, rotary_dim, total_q. */
#define FLASH_SIZES_MIN 152
#define FLASH_SIZES_MAX 224
enum {
    B,
    QUERIES,
    KEYS,
    NEW_KEYS,
    D,
    QUERIES_UP,
    KEYS_UP,
    D_UP,
    ROTARY,
    TOTAL
};

static bool is_rounded(int32_t up, int32_t size, int32_t multiple)
{
    return size > 0 && up >= size && up - size < multiple &&
           up % (multiple > 128 ? 32 : multiple) == 0;
}

static bool is_flash_sizes(const int32_t *s)
{
    return s[B] > 0 && s[D] <= 512 &&
           is_rounded(s[QUERIES_UP], s[QUERIES], 128) &&
           is_rounded(s[KEYS_UP], s[KEYS], 128) &&
           is_rounded(s[D_UP], s[D], 256);
}

bool kernel_flash_read(const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS])
{
    const char *params = launch->arguments[0];
    int32_t heads = int_at(params, FLASH_HEADS);
    int32_t kv_heads = int_at(params, FLASH_KV_HEADS);
    int32_t s[TOTAL + 1];

    if (heads <= 0 || kv_heads <= 0 || heads % kv_heads)
        return false;
    for (size_t at = FLASH_SIZES_MIN; at <= FLASH_SIZES_MAX; at += 8) {
        memcpy(s, params + at, sizeof s);
        if (!is_flash_sizes(s))
            continue;
        words[0] = pack_words(s[QUERIES], s[KEYS]);
        words[1] = pack_words(heads, kv_heads);
        words[2] = pack_words(s[D], s[D]);
        words[3] = pack_words(s[B], 0);
        words[4] = s[TOTAL] > 0 ? (uint64_t)s[TOTAL] : 0;
        return true;
    }
    return false;
}

static bool sizes_record(const struct kernel_launch *launch, const char *sizes,
                         uint8_t mask, uint64_t words[TRACE_LAUNCH_WORDS])
{
    int32_t heads = (int32_t)launch->grid[1], batch = (int32_t)launch->grid[2];
    int32_t s[4]; /* head size, value size, queries, keys */

    memcpy(s, sizes, sizeof s);
    if (s[0] <= 0 || s[1] <= 0 || s[2] <= 0 || s[3] <= 0 || mask > 2)
        return false;
    words[0] = pack_words(s[2], s[3]);
    words[1] = pack_words(heads, heads);
    words[2] = pack_words(s[0], s[1]);
    words[3] = pack_words(batch, mask);
    return true;
}

/* kernel_forward.h, AttentionKernel::Params; the grid is (blocks of queries,
 * heads, batch). */
#define FORWARD_SIZES 96
#define FORWARD_MASK  116

bool kernel_efficient_forward_read(const struct kernel_launch *launch,
                                   uint64_t words[TRACE_LAUNCH_WORDS])
{
    const char *params = launch->arguments[0];

    return sizes_record(launch, params + FORWARD_SIZES,
                        (uint8_t)params[FORWARD_MASK], words);
}

/* kernel_backward.h, AttentionBackwardKernel::Params: the kind of mask follows
 * the number of heads, in later versions after the ratio of heads; then comes
 * the distance of two queries, of 64 bits, which is at least a head's size. */
#define BACKWARD_SIZES      144
#define BACKWARD_MASK       164
#define BACKWARD_MASK_LATER 168
#define BACKWARD_STRIDE     168

bool kernel_efficient_backward_read(const struct kernel_launch *launch,
                                    uint64_t words[TRACE_LAUNCH_WORDS])
{
    const char *params = launch->arguments[0];
    int64_t stride;

    memcpy(&stride, params + BACKWARD_STRIDE, sizeof stride);
    bool later = stride < int_at(params, BACKWARD_SIZES) || stride >> 40;
    return sizes_record(
        launch, params + BACKWARD_SIZES,
        (uint8_t)params[later ? BACKWARD_MASK_LATER : BACKWARD_MASK], words);
}
