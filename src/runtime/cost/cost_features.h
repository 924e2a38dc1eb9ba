/* SPDX-License-Identifier: Apache-2.0
 * What a tree may ask of an operation. Fits and evaluation call this one
 * function, so that a tree sees at run time what it saw when it was grown.
 * Most inputs are base-2 logarithms; rates are relative to the GPU's peaks, so
 * that a tree of one GPU means something on another. */
#ifndef MEMSIM_RUNTIME_COST_COST_FEATURES_H
#define MEMSIM_RUNTIME_COST_COST_FEATURES_H

#include "runtime/cost/cost.h"

#define COST_FEATURES 24

/* Fills X for WORK's family. SOURCE is the number of the data's source within
 * its model: 0 is the one that prices are asked for. Returns how many inputs
 * the family has; 0 where trees do not serve it. */
unsigned cost_features(const struct cost_gpu *gpu, const struct work *work,
                       uint32_t source, float x[COST_FEATURES]);

/* Arithmetic of an attention over whole tiles: head sizes padded as the kernel
 * pads them, half of the square and one diagonal tile where it is causal.
 * FORWARD's; the backward pass computes 2.5 times as much. */
double cost_attention_flops(const struct work_attention_shape *shape);

#define COST_SHAPE_WORDS 20

/* The extents that tell WORK's shape from any other of its family and type;
 * returns how many, 0 where no table has such shapes. */
unsigned cost_shape_words(const struct work *work,
                          uint64_t words[COST_SHAPE_WORDS]);

/* The key of such words, never 0. */
uint64_t cost_words_key(enum work_family family, enum work_type type,
                        const uint64_t *words, unsigned count);

/* The key under which the exact table has WORK's shape; 0: it has none. */
uint64_t cost_shape_key(const struct work *work);

#endif
