/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/graph_change.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/core/base/handle.h"
#include "capture/core/base/pages.h"

struct graph_work_steps *graph_work_steps_new(void)
{
    struct graph_work_steps *work =
        memsim_handle_new(HANDLE_GRAPH_WORK, sizeof *work);

    if (work)
        work->references = 1;
    return work;
}

void graph_work_steps_release(struct graph_work_steps *work)
{
    if (!work || atomic_fetch_sub(&work->references, 1) > 1)
        return;
    graph_steps_fini(&work->steps);
    memsim_handle_free(HANDLE_GRAPH_WORK, work);
}

/* Nodes are only ever added. */
static bool changes_grow(struct graph_changes *changes, uint32_t count)
{
    struct graph_change *of =
        memsim_pages_reserve(0, count * sizeof *changes->of);

    if (!of)
        return false;
    if (changes->of) {
        memcpy(of, changes->of, changes->count * sizeof *of);
        munmap(changes->of, changes->count * sizeof *of);
    }
    changes->of = of;
    changes->count = count;
    return true;
}

struct graph_change *graph_change_begin(struct graph_changes *changes,
                                        uint32_t node, uint32_t nodes)
{
    if (node > changes->count && !changes_grow(changes, nodes))
        return NULL;
    return &changes->of[node - 1];
}

void graph_changes_copy(struct graph_changes *to,
                        const struct graph_changes *from)
{
    *to = (struct graph_changes){0};
    if (!from->count || !changes_grow(to, from->count))
        return;
    memcpy(to->of, from->of, from->count * sizeof *to->of);
    for (uint32_t i = 0; i < to->count; i++)
        if (to->of[i].work)
            atomic_fetch_add(&to->of[i].work->references, 1);
}

void graph_changes_fini(struct graph_changes *changes)
{
    for (uint32_t i = 0; i < changes->count; i++)
        graph_work_steps_release(changes->of[i].work);
    if (changes->of)
        munmap(changes->of, changes->count * sizeof *changes->of);
    *changes = (struct graph_changes){0};
}
