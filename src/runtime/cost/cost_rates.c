/* SPDX-License-Identifier: Apache-2.0
 * Kernels that are bound by more than their family's bytes. Each number is that
 * of the profiles of 22 jobs on one H200 (PyTorch 2.11): shares of the memory's
 * rate, and for all else cycles, so that another GPU's memory, clock and
 * multiprocessors change what they must. */
#include "runtime/cost/cost_rates.h"

#include <math.h>

#define MEASURED_GHZ 1.98 /* the clock at which times were measured */

struct rate {
    float floor_ns;
    float memory;      /* share of the memory's rate */
    float elements;    /* a cycle of a multiprocessor; 0: no limit */
    float block_bytes; /* a cycle of a block; 0: no limit */
    float sm_bytes;    /* a cycle of a multiprocessor, after: */
    float wave_ns;     /* that each wave of blocks takes before */
    float least_ns;    /* that a wave takes at least */
    float turn;        /* elements that a thread loads at a time */
    float turn_ns;     /* until the next ones; 0: no limit */
    float band;        /* that 80% of the errors lie in, as a factor */
};

/* clang-format off */
static const struct rate rates[WORK_RATES] = {
    /* a block of 128 threads a row: the row's mean first, then its values */
    [WORK_RATE_LAYER_NORM] = {1100, 0.9F, 0, 0, 15, 2600, 0, 0, 0, 1.2F},
    [WORK_RATE_LAYER_NORM_DATA] = {1000, 0.9F, 0, 0, 17.6F, 800, 0, 0, 0, 1.2F},
    /* a block of 1024 threads for 32 columns goes over all rows */
    [WORK_RATE_LAYER_NORM_WEIGHTS] =
        {1100, 0.8F, 0, 29, 0, 0, 0, 0, 0, 1.25F},
    /* Welford's update: a division an element */
    [WORK_RATE_MOMENTS] = {1100, 0.8F, 1.7F, 2.5F, 0, 0, 0, 0, 0, 1.25F},
    [WORK_RATE_SMALL_NORM] = {2100, 0.5F, 0, 0, 0, 0, 0, 0, 0, 1.5F},
    [WORK_RATE_BATCH_STATISTICS] = {3000, 0.8F, 1.2F, 0, 0, 0, 0, 0, 0, 1.25F},
    [WORK_RATE_BATCH_TRANSFORM] =
        {1100, 0.57F, 0, 3.6F, 0, 0, 0, 0, 0, 1.15F},
    [WORK_RATE_BATCH_REDUCE] = {8000, 0.56F, 0, 0, 0, 0, 0, 0, 0, 1.25F},
    [WORK_RATE_BATCH_DATA] = {1100, 0.65F, 0, 4.5F, 0, 0, 0, 0, 0, 1.15F},
    [WORK_RATE_CHANNEL_FORWARD] =
        {2500, 0.64F, 0, 10.4F, 0, 0, 0, 0, 0, 1.3F},
    [WORK_RATE_CHANNEL_BACKWARD] =
        {2500, 0.7F, 0, 6.6F, 0, 0, 0, 0, 0, 1.3F},
    [WORK_RATE_SUM_INNER] = {1000, 0.72F, 0, 0, 0, 0, 1500, 4, 850, 1.3F},
    [WORK_RATE_SUM_OUTER] = {1500, 0.72F, 0, 0, 0, 0, 1500, 16, 350, 1.3F},
    /* rows of more than a thousand elements, which are read three times, the
     * last two from memory again */
    [WORK_RATE_LONG_SOFTMAX] = {3000, 0.455F, 0, 0, 0, 0, 0, 0, 0, 1.15F},
    [WORK_RATE_LONG_SOFTMAX_DATA] = {3000, 0.6F, 0, 0, 0, 0, 0, 0, 0, 1.15F},
    /* the same, whose rows fit in shared memory */
    [WORK_RATE_KEPT_SOFTMAX] = {2500, 0.64F, 0, 0, 0, 0, 0, 0, 0, 1.2F},
    [WORK_RATE_KEPT_SOFTMAX_DATA] = {2500, 0.86F, 0, 0, 0, 0, 0, 0, 0, 1.2F},
    /* up to 1024 elements of a row in the registers of a warp */
    [WORK_RATE_WARP_SOFTMAX] = {1500, 0.81F, 0, 0, 0, 0, 0, 0, 0, 1.3F},
    [WORK_RATE_WARP_SOFTMAX_DATA] = {1500, 0.9F, 0, 0, 0, 0, 0, 0, 0, 1.3F},
    /* elements that are loaded one by one and converted; of two inputs */
    [WORK_RATE_CAST] = {1800, 0.8F, 1.35F, 0, 0, 0, 0, 0, 0, 1.2F},
    [WORK_RATE_CAST_PAIR] = {1800, 0.8F, 1, 0, 0, 0, 0, 0, 0, 1.2F},
    /* random numbers bound it */
    [WORK_RATE_DROPOUT] = {1500, 0.75F, 2.25F, 0, 0, 0, 0, 0, 0, 1.15F},
    /* an element at a time, with divisions for its place */
    [WORK_RATE_CAT] = {1500, 0.8F, 0.8F, 0, 0, 0, 0, 0, 0, 1.4F},
    [WORK_RATE_CAT_WIDE] = {1100, 0.85F, 0, 0, 0, 0, 0, 0, 0, 1.2F},
    [WORK_RATE_FUSED_LISTS] = {3000, 0.6F, 0, 0, 0, 0, 0, 0, 0, 1.4F},
    /* a window of comparisons for each element */
    [WORK_RATE_POOL] = {1500, 0.8F, 0.26F, 0, 0, 0, 0, 0, 0, 1.3F},
    [WORK_RATE_POOL_DATA] = {1500, 0.8F, 0.4F, 0, 0, 0, 0, 0, 0, 1.3F},
    [WORK_RATE_UPSAMPLE] = {1500, 0.8F, 1.25F, 0, 0, 0, 0, 0, 0, 1.3F},
    [WORK_RATE_UPSAMPLE_DATA] = {1500, 0.8F, 2, 0, 0, 0, 0, 0, 0, 1.3F},
    /* a block a row */
    [WORK_RATE_GATHER_ROWS] = {1100, 0.86F, 0, 0, 0, 0, 2200, 0, 0, 1.3F},
    [WORK_RATE_SEGMENTS] = {1100, 0.8F, 0, 0, 0, 0, 1570, 0, 0, 1.3F},
    [WORK_RATE_SCATTER_SEGMENTS] = {1100, 0.8F, 0, 0, 0, 0, 1700, 0, 0, 1.3F},
    /* a block for 32 columns goes over the rows in order */
    [WORK_RATE_SERIAL_ROWS] = {2000, 0.5F, 0, 5.5F, 0, 0, 0, 0, 0, 1.6F},
    [WORK_RATE_SORT_PASS] = {5500, 0.3F, 0, 0, 0, 0, 0, 0, 0, 1.5F},
    [WORK_RATE_SORT_SMALL] = {3000, 0.3F, 0, 0, 0, 0, 0, 0, 0, 1.5F},
    [WORK_RATE_SCAN] = {2400, 0.3F, 0, 0, 0, 0, 0, 0, 0, 1.5F},
    /* 64 boxes at a time, each after the one before it */
    [WORK_RATE_BOXES] = {2000, 1, 0, 0, 0, 0, 0, 1, 20500, 1.3F},
    [WORK_RATE_BOX_PAIRS] = {2000, 1, 2.76F, 0, 0, 0, 0, 0, 0, 1.5F},
    [WORK_RATE_ALIGN] = {2000, 0.8F, 0.35F, 0, 0, 0, 0, 0, 0, 1.6F},
    [WORK_RATE_ALIGN_DATA] = {2000, 0.8F, 0.1F, 0, 0, 0, 0, 0, 0, 2},
    /* a block for 16 columns goes over all rows, twice */
    [WORK_RATE_WEIGHT_NORM] = {1100, 0.8F, 0, 10.4F, 0, 0, 0, 0, 0, 1.3F},
    [WORK_RATE_WEIGHT_NORM_DATA] = {1100, 0.8F, 0, 14.7F, 0, 0, 0, 0, 0, 1.3F},
    [WORK_RATE_ONE] = {1000, 0.5F, 0, 0, 0, 0, 0, 0, 0, 1.5F},
    /* one block for all rows, whose threads fetch a target and then a value of
     * it, row by row: 8 to 32768 rows of 91 to 256000 columns */
    [WORK_RATE_LOSS] = {1000, 0.5F, 0, 0, 0, 0, 0, 1, 1100, 1.4F},
    [WORK_RATE_LOSS_DATA] = {1000, 0.5F, 0, 0, 0, 0, 0, 1, 590, 1.4F},
    /* No share of the memory's rate: the family's models know the bytes, and
     * these what the arithmetic takes at least. 1 to 103 million elements in
     * 16 bits, of which the memory could move 1.4 times as many. */
    [WORK_RATE_GELU] = {1500, 0, 2.9F, 0, 0, 0, 0, 0, 0, 0},
    [WORK_RATE_GELU_DATA] = {2000, 0, 2.15F, 0, 0, 0, 0, 0, 0, 0},
    [WORK_RATE_GELU_TANH] = {1500, 0, 3.3F, 0, 0, 0, 0, 0, 0, 0},
    [WORK_RATE_GELU_TANH_DATA] = {2000, 0, 2.55F, 0, 0, 0, 0, 0, 0, 0},
    [WORK_RATE_NORMAL_NUMBERS] = {3300, 0, 1.69F, 0, 0, 0, 0, 0, 0, 0},
};
/* clang-format on */

/* The last block of those that share an output has to wait for all, and then
 * for each thing that it reads: all its threads together where elements of a
 * row are contiguous (Reduce.cuh, global_reduce). */
#define JOIN_NS    4000.0
#define PARTIAL_NS 225.0

static double join_ns(const struct work *work)
{
    double partials = (double)work->rows.partials;

    if (!(partials > 0))
        return 0;
    if (work->rows.stride == 1)
        partials = ceil(partials / fmax(work->threads, 1));
    return JOIN_NS + PARTIAL_NS * partials;
}

/* The estimates of convolutions on GeForce GPUs, which are from whole steps,
 * rest on their family's norms. */
bool cost_is_data_center(const struct cost_gpu *gpu)
{
    return gpu->capability >= 80 && gpu->capability < 120 &&
           gpu->capability % 10 == 0;
}

static double at_clock(const struct cost_gpu *gpu, double ns)
{
    return gpu->clock_mhz ? ns * MEASURED_GHZ / (1e-3 * gpu->clock_mhz) : ns;
}

/* How many blocks of WORK the GPU holds at a time. */
static double held_blocks(const struct cost_gpu *gpu, const struct work *work)
{
    double threads = gpu->sm_threads ? gpu->sm_threads : 2048;
    double most = gpu->sm_blocks ? gpu->sm_blocks : 32;
    double of_sm = floor(threads / fmax(work->threads, 1));

    return fmax(gpu->sm_count, 1) * fmax(fmin(of_sm, most), 1);
}

static double bytes_ns(const struct cost_gpu *gpu, const struct rate *rate,
                       const struct work *work, double held)
{
    double bytes = work->read_bytes + work->written_bytes;
    double cycles = 1e-3 * gpu->clock_mhz;
    double sms = fmax(gpu->sm_count, 1), blocks = (double)work->blocks;
    double ns = bytes / (rate->memory * fmax(gpu->memory_gbps, 1));

    if (rate->elements > 0 && cycles > 0)
        ns = fmax(ns, (double)work->elements / (rate->elements * sms * cycles));
    if (rate->block_bytes > 0 && cycles > 0 && blocks > 0)
        ns =
            fmax(ns, bytes / (rate->block_bytes * cycles * fmin(blocks, held)));
    return ns;
}

/* Blocks that do not load while they compute: a wave's time, then its bytes. */
static double rows_ns(const struct cost_gpu *gpu, const struct rate *rate,
                      const struct work *work, double waves)
{
    double cycles = 1e-3 * gpu->clock_mhz * fmax(gpu->sm_count, 1);
    double bytes = work->read_bytes + work->written_bytes;

    if (!(rate->sm_bytes > 0) || !(cycles > 0))
        return 0;
    return at_clock(gpu, waves * rate->wave_ns) +
           bytes / (rate->sm_bytes * cycles);
}

/* What waves of blocks take at least: their start, and a thread's loads. */
static double waves_ns(const struct rate *rate, const struct work *work,
                       double waves)
{
    double threads = (double)work->blocks * fmax(work->threads, 1);
    double turns = rate->turn > 0 && threads > 0
                       ? (double)work->elements / (threads * rate->turn)
                       : 0;

    return waves * (rate->least_ns + turns * rate->turn_ns);
}

static bool is_norm(enum work_family family)
{
    return family == WORK_NORM_FORWARD || family == WORK_NORM_BACKWARD;
}

static bool has_rows(const struct work *work)
{
    return work->family == WORK_REDUCE;
}

static const struct rate *rate_of(const struct work *work)
{
    return &rates[work->rate < WORK_RATES ? work->rate : WORK_RATE_NONE];
}

double cost_arithmetic_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct rate *rate = rate_of(work);
    double clocks = 1e-3 * gpu->clock_mhz * gpu->sm_count; /* a nanosecond */

    if (rate->memory > 0 || !(rate->elements > 0) || !(clocks > 0))
        return 0;
    return rate->floor_ns + (double)work->elements / (rate->elements * clocks);
}

int cost_rate_time(const struct cost_gpu *gpu, const struct work *work,
                   struct cost_time *time)
{
    const struct rate *rate = rate_of(work);

    if (!(rate->memory > 0) ||
        (is_norm(work->family) && !cost_is_data_center(gpu)))
        return -1;
    double held = held_blocks(gpu, work);
    double waves = ceil((double)work->blocks / held);
    double ns = fmax(bytes_ns(gpu, rate, work, held),
                     at_clock(gpu, waves_ns(rate, work, waves)));
    ns = rate->floor_ns + fmax(ns, rows_ns(gpu, rate, work, waves));
    if (has_rows(work))
        ns += at_clock(gpu, join_ns(work));
    *time = (struct cost_time){ns, 1 / rate->band, rate->band};
    return 0;
}
