/* SPDX-License-Identifier: Apache-2.0
 * cuBLASLt's descriptors. A program may put them on its own stack, so our state
 * lies in the words that the header declares, and nowhere else. */
#ifndef MEMSIM_CAPTURE_CUBLASLT_CUBLASLT_FAKE_H
#define MEMSIM_CAPTURE_CUBLASLT_CUBLASLT_FAKE_H

#include <cublasLt.h>
#include <stdint.h>

/* The first word of a descriptor that was set up. */
enum lt_kind {
    LT_LAYOUT = 0x4c740001,
    LT_PRODUCT,
    LT_TRANSFORM,
    LT_PREFERENCE,
};

struct lt_layout {
    uint32_t kind;
    int32_t type, order, batch;
    int64_t rows, columns, leading, batch_stride, plane_offset;
    int32_t batch_mode;
};

struct lt_product {
    uint32_t kind;
    int32_t compute, scale, pointer_mode, transpose[3], fill, epilogue;
    int32_t sm_target, auxiliary_type, bias_type, chunks[2];
    int32_t scale_modes[5], output_scale_mode;
    uint64_t bias, bias_stride, auxiliary, auxiliary_leading;
    uint64_t auxiliary_stride, alpha_stride, scales[4], maximum;
    uint64_t auxiliary_scale, auxiliary_maximum, counters[2];
    uint64_t output_scale, emulation;
    int8_t fast_accumulation;
};

struct lt_transform {
    uint32_t kind;
    int32_t scale, pointer_mode, transpose[2];
};

struct lt_preference {
    uint32_t kind;
    uint32_t search;
    uint64_t workspace_bytes;
    uint32_t math_modes, reductions, alignment[4];
    float waves;
    uint32_t pointer_modes, epilogues;
    uint64_t implementations;
};

/* DESCRIPTOR as ours, or NULL where it was not set up as KIND. */
void *lt_get(const void *descriptor, enum lt_kind kind);

#endif
