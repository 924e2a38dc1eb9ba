/* SPDX-License-Identifier: Apache-2.0
 * Which GPUs of the catalogue a job can run on: the one rule of all lists. */
#ifndef MEMSIM_MEMSIM_RESULT_GPU_NEED_H
#define MEMSIM_MEMSIM_RESULT_GPU_NEED_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/catalogue/capability.h"
#include "common/catalogue/gpu.h"

/* By memory alone, and by what the job's libraries were compiled for: another
 * GPU may choose other kernels, whose workspaces differ. */
struct gpu_need {
    uint64_t used_bytes, context_bytes; /* the second is part of the first */
    struct capability_set code;         /* empty: not known */
};

/* A GPU whose context is larger needs so much more. */
bool gpu_need_is_met(const struct gpu_need *need, const struct gpu *gpu);

/* Whether the job's libraries have code for GPU, as far as CODE is known. */
bool gpu_has_code(const struct gpu *gpu, const struct capability_set *code);

/* The catalogue without variants, by memory. The caller frees *LIST. Returns 0
 * or -1. */
int gpu_list_by_memory(struct gpu **list, size_t *count, struct err *err);

#endif
