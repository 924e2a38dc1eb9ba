/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/gpu_need.h"

#include <stdlib.h>
#include <string.h>

bool gpu_has_code(const struct gpu *gpu, const struct capability_set *code)
{
    return capability_is_empty(code) ||
           capability_has(code, gpu->capability_major, gpu->capability_minor);
}

bool gpu_need_is_met(const struct gpu_need *need, const struct gpu *gpu)
{
    uint64_t context = gpu->context_torch_bytes;
    uint64_t more =
        context > need->context_bytes ? context - need->context_bytes : 0;

    return gpu_has_code(gpu, &need->code) &&
           need->used_bytes + more <= gpu->memory_bytes;
}

static int by_memory(const void *x, const void *y)
{
    const struct gpu *a = x, *b = y;

    if (a->memory_bytes != b->memory_bytes)
        return a->memory_bytes < b->memory_bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

int gpu_list_by_memory(struct gpu **list, size_t *count, struct err *err)
{
    size_t all;

    *count = 0;
    if (gpu_list(list, &all, err))
        return -1;
    for (size_t i = 0; i < all; i++)
        if (!(*list)[i].is_variant)
            (*list)[(*count)++] = (*list)[i];
    qsort(*list, *count, sizeof **list, by_memory);
    return 0;
}
