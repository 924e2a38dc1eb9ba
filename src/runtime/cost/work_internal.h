/* SPDX-License-Identifier: Apache-2.0
 * For the files that describe work, among themselves. */
#ifndef MEMSIM_RUNTIME_WORK_INTERNAL_H
#define MEMSIM_RUNTIME_WORK_INTERNAL_H

#include "runtime/cost/work.h"
#include "runtime/cost/work_text.h"

/* A launch's record, unpacked. */
#define WORK_WORDS 4
struct work_launch {
    uint64_t grid[3], block[3]; /* at least 1 each */
    uint32_t shared_bytes;
    enum trace_rule rule;
    uint64_t words[WORK_WORDS]; /* what the rule says of them */
};

/* A kernel that is known: by its base name and, where CONTAINS is not NULL, by
 * what occurs in the whole name. */
struct work_rule {
    const char *base;
    const char *contains;
    enum work_family family;
    /* What the name says beyond types and numbers; or NULL. */
    void (*read)(const struct text_name *name, struct work_kernel *kernel);
    /* Sets shapes and bytes; false where the launch does not tell them. */
    bool (*describe)(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work);
};

/* work_rules.c */
const struct work_rule *work_rule_of(const struct work_kernel *kernel);
uint16_t work_rule_find(struct text name, struct text base);

/* work_functor.c: the operands of an elementwise kernel from its functor.
 * INPUTS: how many it reads where that is known from elsewhere, else -1. */
void work_functor_read(struct text functor, int inputs,
                       struct work_kernel *kernel);

/* work_elementwise.c, work_rows.c: rules' functions. */
void work_read_vectorized(const struct text_name *name,
                          struct work_kernel *kernel);
void work_read_strided(const struct text_name *name,
                       struct work_kernel *kernel);
void work_read_foreach(const struct text_name *name,
                       struct work_kernel *kernel);
bool work_elementwise(const struct work_kernel *kernel,
                      const struct work_launch *launch, struct work *work);
bool work_foreach(const struct work_kernel *kernel,
                  const struct work_launch *launch, struct work *work);
void work_read_reduce(const struct text_name *name, struct work_kernel *kernel);
bool work_reduce(const struct work_kernel *kernel,
                 const struct work_launch *launch, struct work *work);
bool work_layer_norm(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work);
bool work_softmax_warp(const struct work_kernel *kernel,
                       const struct work_launch *launch, struct work *work);
bool work_softmax_block(const struct work_kernel *kernel,
                        const struct work_launch *launch, struct work *work);

/* work_library.c: calls of libraries, and copies. FIELDS in trace.h's order. */
void work_gemm(const struct op *op, struct work *work);
void work_convolution(const struct op *op, struct work *work);
void work_attention(const struct op *op, struct work *work);
void work_attention_set(const struct work_attention_shape *shape, bool backward,
                        struct work *work);
void work_copy(const struct op *op, struct work *work);
void work_set(const struct op *op, struct work *work);
void work_library_call(const struct op *op, const char *name,
                       struct work *work);
void work_collective(const struct op *op, struct work *work);

static inline uint64_t work_field(const struct op *op, unsigned index)
{
    return index < op->field_count ? op->fields[index] : 0;
}

#endif
