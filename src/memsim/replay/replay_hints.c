/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/replay_hints.h"

#include <string.h>

#include "common/base/crc32c.h"
#include "memsim/replay/workspace.h"

static void take_block(struct replay_hints *h, const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    unsigned thread = item->head.thread % REPLAY_HINT_THREADS;
    uint64_t bytes = alloc->requested_bytes;

    h->latest[thread].bytes = bytes;
    h->latest[thread].index = h->index;
    if (workspace_is_cublas(bytes))
        map_put(&h->blocks, alloc->address, (void *)(uintptr_t)(h->index + 1));
    struct size_range size;
    if (size_ranges_take(&h->sizes, item, &size)) {
        if (size.least_bytes)
            map_put(&h->least, h->index + 1,
                    (void *)(uintptr_t)size.least_bytes);
        map_put(&h->most, h->index + 1, (void *)(uintptr_t)size.most_bytes);
    }
}

/* A block of another size is the user's choice (CUBLAS_WORKSPACE_CONFIG). */
static void take_call(struct replay_hints *h, const struct trace_item *item,
                      const struct trace_names *names)
{
    const struct trace_library_call *call = trace_as_library_call(item);
    const char *name = trace_names_get(names, call->name);
    void *made;

    if (strcmp(name, "cublasSetWorkspace"))
        return;
    made = map_get(&h->blocks, call->a);
    if (made)
        map_put(&h->lent, (uintptr_t)made, h);
}

/* run_conv_plan (aten/src/ATen/native/cudnn/Conv_v8.cpp) takes the workspace
 * and runs the plan, with nothing in between. */
static void take_convolution(struct replay_hints *h,
                             const struct trace_item *item)
{
    unsigned thread = item->head.thread % REPLAY_HINT_THREADS;
    const struct trace_convolution *call = trace_as_convolution(item);
    uint64_t bytes = call->workspace_bytes;
    uint64_t plan = crc32c(0, item->text, item->head.text_bytes);

    if (!bytes || h->latest[thread].bytes != bytes)
        return;
    plan = plan << 8 | call->operation % 128 | 128;
    map_put(&h->plans, h->latest[thread].index + 1, (void *)(uintptr_t)plan);
    if (call->workspace_most > bytes)
        map_put(&h->most, h->latest[thread].index + 1,
                (void *)(uintptr_t)call->workspace_most);
}

void replay_hints_take(struct replay_hints *h, const struct trace_item *item,
                       const struct trace_names *names)
{
    switch (item->head.kind) {
    case TRACE_BLOCK_ALLOC:
        take_block(h, item);
        break;
    case TRACE_BLOCK_FREE:
        map_take(&h->blocks, trace_as_block_free(item)->address);
        break;
    case TRACE_SIZE_RANGE:
        size_ranges_tell(&h->sizes, item);
        break;
    case TRACE_LIBRARY_CALL:
        take_call(h, item, names);
        break;
    case TRACE_CONVOLUTION:
        take_convolution(h, item);
        break;
    default:
        break;
    }
    h->index++;
}

void replay_hints_finish(struct replay_hints *h)
{
    map_fini(&h->blocks);
}

void replay_hints_fini(struct replay_hints *h)
{
    replay_hints_finish(h);
    map_fini(&h->lent);
    map_fini(&h->plans);
    map_fini(&h->least);
    map_fini(&h->most);
}
