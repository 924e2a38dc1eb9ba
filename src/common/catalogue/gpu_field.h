/* SPDX-License-Identifier: Apache-2.0
 * The keys of a GPU's JSON file, one row each, and what stands in for those
 * that it leaves out. */
#ifndef MEMSIM_COMMON_CATALOGUE_GPU_FIELD_H
#define MEMSIM_COMMON_CATALOGUE_GPU_FIELD_H

#include <stdbool.h>
#include <stddef.h>

struct gpu;

enum gpu_kind { GPU_TEXT, GPU_CAPABILITY, GPU_U32, GPU_U64, GPU_NUMBER };

struct gpu_field {
    const char *key; /* in the file, and the member's name in struct gpu */
    enum gpu_kind kind;
    size_t offset;
    size_t size;
    double min, max; /* of a number; in what unit, the key says */
};

extern const struct gpu_field gpu_fields[];
extern const size_t gpu_field_count;

/* Returns the row of KEY, or NULL. */
const struct gpu_field *gpu_field_find(const char *key);

/* Makes FIELD of *GPU unknown; gpu_field_known tells. */
void gpu_field_forget(const struct gpu_field *field, struct gpu *gpu);
bool gpu_field_known(const struct gpu_field *field, const struct gpu *gpu);

/* Gives every unknown field of *GPU that follows from others its value: from
 * the compute capability (6.0 or above), clocks and counts. */
void gpu_field_defaults(struct gpu *gpu);

#endif
