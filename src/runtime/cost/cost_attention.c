/* SPDX-License-Identifier: Apache-2.0
 * cuDNN's attention on Hopper, tile by tile. A block takes TILE queries and
 * goes over the keys that they see, TILE at a time:
 *
 *           keys
 *        +--+--+--+--+      4 x 4 tiles, a block each row; causal: the last
 *  q     |##|  |  |  |      block does four tiles, all together ten, and the
 *  u     +--+--+--+--+      tiles on the diagonal are masked
 *  e     |##|##|  |  |
 *  r     +--+--+--+--+
 *  i     |##|##|##|  |
 *  e     +--+--+--+--+
 *  s     |##|##|##|##|
 *        +--+--+--+--+
 *
 * A tile costs its products and exponentials, with dropout its random numbers,
 * with a bias its loads. The backward has two kernels more, which read and
 * write rows of queries. Tiles are fitted to FlashAttention-3's figures of
 * cuDNN on an H100 (512 to 16384 tokens, heads of 64 to 256); dropout, bias, a
 * backward's block and its heads of 256 to the jobs of one H200. */
#include "runtime/cost/cost_rates.h"

#include <math.h>

#define TILE       128.0
#define FEW_BLOCKS 4.0 /* waves; of more, the last one is no matter */
#define BAND       1.14 /* holds 18 of 22 times of the H200 */

/* Cycles of a multiprocessor. */
struct pass {
    double tile[3];       /* by head sizes of 64, 128, 256 */
    double block;         /* begins and ends, for each 64 of the head size */
    double floor_ns;      /* of all kernels of a call */
    double element_bytes; /* of queries, beside the tiles */
};

static const struct pass passes[] = {
    {{2750, 3660, 8200}, 1360, 2200, 0},
    {{6200, 10100, 27000}, 5900, 4100, 13.2},
};

#define DIAGONAL 0.49 /* of a tile, that a causal mask costs a block */
#define BESIDE_MEMORY 0.85

/* Pairs of a query and a key in a cycle of a multiprocessor. */
#define DROPOUT_PAIRS 4.3
#define BIAS_PAIRS    5.3

/* cuDNN's kernels of Hopper draw 3.6 random numbers a cycle of a
 * multiprocessor, forward and backward: GPT-2 with 8 and 32 x 12 heads of 1024
 * tokens takes 65 to 230 us more than without dropout on an H200, BERT with 128
 * tokens 6. Other kernels are taken to draw as many. */
#define DROPOUT_NUMBERS 3.6

static bool is_half(const struct work *work)
{
    return work->type == WORK_FP16 || work->type == WORK_BF16;
}

static bool is_attention(const struct work *work)
{
    return work->family == WORK_ATTENTION_FORWARD ||
           work->family == WORK_ATTENTION_BACKWARD;
}

/* Whether a Hopper GPU's clock and the shape are known. */
static bool is_sized(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_attention_shape *a = &work->attention;

    return gpu->capability == 90 && gpu->clock_mhz && gpu->sm_count &&
           a->head_size && a->head_size <= 256 && a->queries && a->keys;
}

static bool is_known(const struct cost_gpu *gpu, const struct work *work)
{
    return is_attention(work) && is_half(work) && is_sized(gpu, work) &&
           work->attention.kernel == WORK_ATTENTION_CUDNN;
}

/* Tiles of keys that a block goes over: in the mean, and the most. */
struct depth {
    double mean, most;
};

static struct depth depth_of(const struct work_attention_shape *a)
{
    double queries = ceil((double)a->queries / TILE);
    double keys = ceil((double)a->keys / TILE);

    if (!a->causal)
        return (struct depth){keys, keys};
    double first = fmax(keys - queries + 1, 1);
    return (struct depth){(first + keys) / 2 + DIAGONAL, keys};
}

static double tile_cycles(const struct pass *p,
                          const struct work_attention_shape *a)
{
    unsigned size = a->head_size <= 64 ? 0 : a->head_size <= 128 ? 1 : 2;
    double cycles = p->tile[size];

    if (a->dropout)
        cycles += TILE * TILE / DROPOUT_PAIRS;
    if (a->bias)
        cycles += TILE * TILE / BIAS_PAIRS;
    return cycles;
}

/* All blocks, on all multiprocessors. Of causal blocks that do not fill the GPU
 * the longest one counts as much as the mean. */
static double blocks_cycles(const struct cost_gpu *gpu, const struct pass *p,
                            const struct work_attention_shape *a)
{
    const struct depth depth = depth_of(a);
    double wide = a->head_size <= 64 ? 1 : a->head_size <= 128 ? 2 : 4;
    double blocks = (double)(a->batch * a->heads) *
                    ceil((double)a->queries / TILE);
    double waves = blocks / gpu->sm_count;
    double tiles = waves < 1 ? (depth.mean + depth.most) / 2 : depth.mean;

    return (waves < FEW_BLOCKS ? ceil(waves) : waves) *
           (p->block * wide + tiles * tile_cycles(p, a));
}

/* PyTorch's memory-efficient kernels in fp32: the GPT-2 of one H200 with 4 and
 * 8 x 12 heads of 1024 causal tokens, 377 and 641 us forward, 732 and 1300
 * backward, with dropout. Beside the mean of all blocks the longest one counts,
 * as it may begin last. Heads are padded to 64, or to multiples of 128, as the
 * kernels' names say (64x64, 32x128). All of one shape: hence the band. */
#define PLAIN_TILE 64.0
#define PLAIN_BAND 1.4

static const double plain_tile[] = {10060, 21100}; /* cycles, by head size 64 */

static bool is_plain(const struct cost_gpu *gpu, const struct work *work)
{
    return work->attention.kernel == WORK_ATTENTION_EFFICIENT &&
           work->type == WORK_FP32 && is_attention(work) && is_sized(gpu, work);
}

static double plain_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_attention_shape *a = &work->attention;
    bool backward = work->family == WORK_ATTENTION_BACKWARD;
    double size = ceil((double)a->head_size / PLAIN_TILE);
    double cycles = plain_tile[backward] * (size > 1 ? ceil(size / 2) * 2 : 1);
    double blocks = (double)(a->batch * a->heads) *
                    ceil((double)a->queries / PLAIN_TILE);
    double keys = ceil((double)a->keys / PLAIN_TILE);
    double mean = a->causal ? (keys + 1) / 2 : keys;

    if (a->dropout)
        cycles += PLAIN_TILE * PLAIN_TILE / DROPOUT_NUMBERS;
    return (blocks * mean / gpu->sm_count + keys) * cycles /
           (1e-3 * gpu->clock_mhz);
}

static double tiles_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_attention_shape *a = &work->attention;
    const struct pass *p = &passes[work->family == WORK_ATTENTION_BACKWARD];
    double queries = (double)(a->batch * a->heads) * (double)a->queries *
                     (double)a->head_size;
    double beside = p->element_bytes * queries /
                    (BESIDE_MEMORY * fmax(gpu->memory_gbps, 1));

    return p->floor_ns + beside +
           blocks_cycles(gpu, p, a) / (1e-3 * gpu->clock_mhz);
}

int cost_attention_time(const struct cost_gpu *gpu, const struct work *work,
                        struct cost_time *time)
{
    if (is_known(gpu, work))
        *time = (struct cost_time){tiles_ns(gpu, work), 1 / BAND, BAND};
    else if (is_plain(gpu, work))
        *time = (struct cost_time){plain_ns(gpu, work), 1 / PLAIN_BAND,
                                   PLAIN_BAND};
    else
        return -1;
    return 0;
}
double cost_dropout_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_attention_shape *a = &work->attention;
    double clocks = 1e-3 * gpu->clock_mhz * gpu->sm_count; /* a nanosecond */

    if (!is_attention(work) || !a->dropout || !(clocks > 0))
        return 0;
    double pairs = (double)(a->batch * a->heads) * (double)a->queries *
                   (double)a->keys / (a->causal ? 2 : 1);
    return pairs / (DROPOUT_NUMBERS * clocks);
}
