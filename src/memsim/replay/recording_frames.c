/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/recording_frames.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/xmalloc.h"

static uint32_t text_place(struct recording_frames *r, const char *text,
                           size_t length)
{
    uint64_t key = hash_bytes(HASH_START, text, length);
    uintptr_t place = (uintptr_t)map_get(&r->texts, key);

    if (!place) {
        place = 1 + snapshot_frames_text(&r->frames, text, length);
        map_put(&r->texts, key, (void *)place);
    }
    return (uint32_t)(place - 1);
}

static void frame_add(struct recording_frames *r, const char *file,
                      const char *name)
{
    if (*name)
        snapshot_frames_add(&r->frames, text_place(r, file, strlen(file)),
                            text_place(r, name, strlen(name)), 0);
}

/* "/a/b.py:3 forward", of LENGTH bytes. A path may have spaces and colons, a
 * function's name has none. */
static void line_add(struct recording_frames *r, const char *line,
                     size_t length)
{
    size_t name = length, colon;

    while (name && line[name - 1] != ' ')
        name--;
    for (colon = name; colon && line[colon - 1] != ':';)
        colon--;
    if (!colon)
        return;
    snapshot_frames_add(&r->frames, text_place(r, line, colon - 1),
                        text_place(r, line + name, length - name),
                        (uint32_t)strtoul(line + colon, NULL, 10));
}

static void stack_add(struct recording_frames *r, const char *stack)
{
    while (*stack) {
        size_t length = strcspn(stack, "\n");

        line_add(r, stack, length);
        stack += length + (stack[length] == '\n');
    }
}

/* The record at ORDINAL asked for memory. */
static void see_allocation(struct recording_frames *r, uint64_t ordinal,
                           uint64_t operation, uint64_t module, uint64_t stack)
{
    uint64_t name = (uintptr_t)map_get(&r->modules, module);
    const uint64_t parts[] = {operation, name, stack};
    uint64_t key = hash_bytes(HASH_START, parts, sizeof parts);
    uintptr_t number = (uintptr_t)map_get(&r->known, key);

    if (!number) {
        frame_add(r, RECORDING_OPERATOR, trace_names_get(r->names, operation));
        frame_add(r, RECORDING_MODULE,
                  name ? trace_names_get(r->names, name - 1) : "");
        stack_add(r, trace_names_get(r->names, stack));
        number = snapshot_frames_close(&r->frames);
    }
    if (!number)
        return;
    map_put(&r->known, key, (void *)number);
    map_put(&r->stacks, ordinal + 1, (void *)number);
}

static void frame_take(void *context, const struct trace_item *item,
                       const struct trace_now *now)
{
    struct recording_frames *r = context;

    r->names = now->names;
    if (item->head.kind == TRACE_BLOCK_ALLOC) {
        const struct trace_block_alloc *a = trace_as_block_alloc(item);
        see_allocation(r, now->ordinal, a->operator, a->module, a->stack);
    } else if (item->head.kind == TRACE_OOM) {
        const struct trace_oom *o = trace_as_oom(item);
        see_allocation(r, now->ordinal, o->operator, o->module, o->stack);
    } else if (item->head.kind == TRACE_MODULE) {
        const struct trace_module *m = trace_as_module(item);
        map_put(&r->modules, m->module, (void *)(uintptr_t)(m->name + 1));
    }
}

struct recording_frames *recording_frames_create(void)
{
    return xcalloc(1, sizeof(struct recording_frames));
}

struct trace_listener recording_frames_listener(struct recording_frames *f)
{
    return (struct trace_listener){.take = frame_take, .context = f};
}

void recording_frames_destroy(struct recording_frames *f)
{
    if (!f)
        return;
    snapshot_frames_fini(&f->frames);
    map_fini(&f->stacks);
    map_fini(&f->modules);
    map_fini(&f->texts);
    map_fini(&f->known);
    free(f);
}
