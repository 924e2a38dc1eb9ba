/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/foreach.h"

#include <stdlib.h>
#include <string.h>

#include "capture/core/run/process.h"

/* depth_to_max_tensors, ..._scalarlist and depth_to_max_blocks; the type of
 * block_to_tensor. */
static const struct layout {
    uint32_t tensors[FOREACH_DEPTH_MAX];
    uint32_t tensors_scalarlist[FOREACH_DEPTH_MAX];
    uint32_t blocks, index_bytes;
} layouts[] = {
    {{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, 320, 1},
    {{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, 2240, 2},
};

static uint32_t tensor_of(const struct layout *layout, const char *indices,
                          uint32_t block)
{
    uint16_t index;

    if (layout->index_bytes == 1)
        return (unsigned char)indices[block];
    memcpy(&index, indices + 2 * block, sizeof index);
    return index;
}

/* Numbers of elements that can be, with the first and the last chunk in them.
 */
static bool is_plausible(const struct foreach_lists *l)
{
    uint32_t last = l->tensors - 1;

    for (uint32_t t = 0; t <= last; t++)
        if (l->numel[t] <= 0 || l->numel[t] > INT64_C(1) << 44)
            return false;
    return l->first_chunk >= 0 && l->last_chunk >= 0 &&
           (int64_t)l->first_chunk * FOREACH_CHUNK_ELEMENTS < l->numel[0] &&
           (int64_t)l->last_chunk * FOREACH_CHUNK_ELEMENTS < l->numel[last];
}

static bool lists_read(const struct layout *layout,
                       const struct foreach_kind *kind,
                       const struct kernel_launch *launch,
                       struct foreach_lists *l)
{
    const uint32_t *room =
        kind->scalar_bytes ? layout->tensors_scalarlist : layout->tensors;

    l->room = room[kind->depth - 1];
    l->blocks = launch->grid[0];
    if (!l->blocks || l->blocks > layout->blocks)
        return false;
    l->addresses = launch->arguments[0];
    l->numel = (const int64_t *)(l->addresses + l->room * kind->depth);
    l->scalars = (const char *)(l->numel + l->room);
    const char *tensor =
        l->scalars + l->room * (kind->has_steps ? 8 : kind->scalar_bytes);
    const int *chunk =
        (const int *)(tensor + layout->blocks * layout->index_bytes);
    l->bytes = (uint32_t)((const char *)(chunk + l->blocks) -
                          (const char *)l->addresses);
    l->tensors = tensor_of(layout, tensor, l->blocks - 1) + 1;
    l->first_chunk = chunk[0];
    l->last_chunk = chunk[l->blocks - 1];
    return !tensor_of(layout, tensor, 0) && l->tensors <= l->room &&
           is_plausible(l);
}

/* Which layout this process's PyTorch has, by its version: "2.12.1+cu130". */
static int layout_expected(void)
{
    static _Atomic int found = -1;
    const struct session_process *slot = process_slot();
    char *end;

    if (found < 0 && slot && *slot->torch_version) {
        const char *version = slot->torch_version;
        unsigned long major = strtoul(version, &end, 10);
        unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

        found = (major > 2 || (major == 2 && minor >= 12)) &&
                !strstr(version, "+cu12");
    }
    return found > 0;
}

bool foreach_read(const struct foreach_kind *kind,
                  const struct kernel_launch *launch,
                  struct foreach_lists *lists)
{
    int first = layout_expected();

    return lists_read(&layouts[first], kind, launch, lists) ||
           lists_read(&layouts[!first], kind, launch, lists);
}
