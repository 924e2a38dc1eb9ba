/* SPDX-License-Identifier: Apache-2.0
 * The buckets in which DistributedDataParallel averages gradients: in the order
 * in which they were ready in the first backward, until a bucket has at least a
 * limit (torch/csrc/distributed/c10d/reducer.cpp,
 * compute_bucket_assignment_by_size; torch/nn/parallel/distributed.py). */
#ifndef MEMSIM_MEMSIM_CHANGE_BUCKET_RULE_H
#define MEMSIM_MEMSIM_CHANGE_BUCKET_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes from which on the first bucket, and the others, are full. */
struct bucket_rule {
    uint64_t first, others;
};

/* Gradients of SIZES elements, of EACH bytes, as they are ready. */
struct bucket_gradients {
    const uint64_t *sizes;
    size_t count;
    uint64_t each;
};

/* Cuts gradients G. ENDS, with room for as many, gets the index behind the last
 * of each bucket. Returns the number of buckets. */
size_t bucket_cut(const struct bucket_rule *rule,
                  const struct bucket_gradients *g, size_t *ends);

/* Finds the rule that makes the COUNT buckets of ENDS: PyTorch's default, or
 * the only whole number of MiB as bucket_cap_mb that does. False: none. */
bool bucket_rule_find(struct bucket_rule *rule,
                      const struct bucket_gradients *g, const size_t *ends,
                      size_t count);

#endif
