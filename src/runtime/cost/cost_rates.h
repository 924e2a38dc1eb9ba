/* SPDX-License-Identifier: Apache-2.0
 * Prices of single kernels, by what bounds each: src/runtime/cost alone. */
#ifndef MEMSIM_RUNTIME_COST_COST_RATES_H
#define MEMSIM_RUNTIME_COST_COST_RATES_H

#include "runtime/cost/cost.h"

/* A time and its band, as factors of it. */
struct cost_time {
    double ns, low, high;
};

/* GPUs of 8.0, 9.0 and 10.0: those of 8.6, 8.9 and 12.0 are not. */
bool cost_is_data_center(const struct cost_gpu *gpu);

/* Prices WORK by its rate. Returns 0, or -1 where it has none. */
int cost_rate_time(const struct cost_gpu *gpu, const struct work *work,
                   struct cost_time *time);

/* The least that the arithmetic of WORK's elements takes, where that may be
 * more than its bytes do; 0: it is not known. */
double cost_arithmetic_ns(const struct cost_gpu *gpu, const struct work *work);

/* Below it a convolution's input is padded. */
#define COST_FEW_CHANNELS 8

/* Prices a convolution that GPU has no times of, likewise. */
int cost_convolution_time(const struct cost_gpu *gpu, const struct work *work,
                          struct cost_time *time);

/* The least that a product takes for how its operands lie in memory; 0: they
 * cost nothing. */
double cost_layout_ns(const struct cost_gpu *gpu, const struct work *work);

/* Prices cuDNN's attention, likewise, with its dropout and its bias, and
 * PyTorch's memory-efficient one in fp32. */
int cost_attention_time(const struct cost_gpu *gpu, const struct work *work,
                        struct cost_time *time);

/* What dropout adds to the price of any other attention. */
double cost_dropout_ns(const struct cost_gpu *gpu, const struct work *work);

#endif
