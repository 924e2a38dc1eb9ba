/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/snapshot/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

/* torch/csrc/cuda/Module.cpp, action_to_str */
static const char *const action_names[] = {
    [ALLOC_ALLOC] = "alloc",
    [ALLOC_FREE_REQUESTED] = "free_requested",
    [ALLOC_FREE_COMPLETED] = "free_completed",
    [ALLOC_SEGMENT_ALLOC] = "segment_alloc",
    [ALLOC_SEGMENT_FREE] = "segment_free",
    [ALLOC_SEGMENT_MAP] = "segment_map",
    [ALLOC_SEGMENT_UNMAP] = "segment_unmap",
    [ALLOC_SNAPSHOT] = "snapshot",
    [ALLOC_OOM] = "oom",
};

const char *snapshot_action_name(enum alloc_action action)
{
    return action <= ALLOC_OOM ? action_names[action] : NULL;
}

enum alloc_action snapshot_action_find(const char *name)
{
    for (int action = 0; action <= ALLOC_OOM; action++)
        if (!strcmp(name, action_names[action]))
            return (enum alloc_action)action;
    return ALLOC_ACTIONS;
}

struct snapshot_segment *snapshot_add_segment(struct snapshot *s)
{
    xgrow(&s->segments, s->segment_count, &s->segment_capacity,
          sizeof *s->segments);
    s->segments[s->segment_count] = (struct snapshot_segment){0};
    return &s->segments[s->segment_count++];
}

void snapshot_add_event(struct snapshot *s, unsigned device,
                        const struct snapshot_event *event)
{
    if (device >= s->trace_count) {
        s->traces = xreallocarray(s->traces, device + 1, sizeof *s->traces);
        memset(s->traces + s->trace_count, 0,
               (device + 1 - s->trace_count) * sizeof *s->traces);
        s->trace_count = device + 1;
    }
    struct snapshot_trace *t = &s->traces[device];
    xgrow(&t->events, t->count, &t->capacity, sizeof *t->events);
    t->events[t->count++] = *event;
}

void snapshot_fini(struct snapshot *s)
{
    for (size_t i = 0; i < s->segment_count; i++)
        free(s->segments[i].blocks);
    free(s->segments);
    for (size_t i = 0; i < s->trace_count; i++)
        free(s->traces[i].events);
    free(s->traces);
    snapshot_frames_fini(&s->frames);
    free(s->settings);
    free(s->torch_version);
    *s = (struct snapshot){0};
}

bool snapshot_is_pickle(const void *start, size_t bytes)
{
    const unsigned char *p = start;

    return bytes >= 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5;
}

static int by_place(const void *x, const void *y)
{
    const struct snapshot_segment *a = x, *b = y;

    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

static int check_blocks(const struct snapshot_segment *g, const char *origin,
                        struct err *err)
{
    uint64_t at = g->address;

    for (size_t i = 0; i < g->block_count; i++) {
        const struct snapshot_block *b = &g->blocks[i];

        if (b->address != at || !b->bytes ||
            b->bytes > g->bytes - (at - g->address))
            return err_set(err,
                           "%s:segment %#" PRIx64 ": block %zu at %#" PRIx64
                           " does not follow the one before",
                           origin, g->address, i, b->address);
        at += b->bytes;
    }
    if (at != g->address + g->bytes)
        return err_set(err,
                       "%s:segment %#" PRIx64 ": its blocks are %" PRIu64
                       " bytes, not %" PRIu64,
                       origin, g->address, at - g->address, g->bytes);
    return 0;
}

int snapshot_check(struct snapshot *s, const char *origin, struct err *err)
{
    if (s->segment_count)
        qsort(s->segments, s->segment_count, sizeof *s->segments, by_place);
    for (size_t i = 0; i < s->segment_count; i++) {
        const struct snapshot_segment *g = &s->segments[i];

        if (!g->address || !g->bytes || g->address + g->bytes < g->address)
            return err_set(err,
                           "%s:segment %#" PRIx64 ": impossible size %" PRIu64,
                           origin, g->address, g->bytes);
        if (i && g[-1].device == g->device &&
            g->address - g[-1].address < g[-1].bytes)
            return err_set(err,
                           "%s:segment %#" PRIx64 ": overlaps the one "
                           "before",
                           origin, g->address);
        if (check_blocks(g, origin, err))
            return -1;
    }
    return 0;
}

const struct snapshot_event *snapshot_order_next(struct snapshot_order *order,
                                                 unsigned *device,
                                                 size_t *place)
{
    const struct snapshot *s = order->snapshot;
    const struct snapshot_event *first = NULL;

    if (!order->at)
        order->at = xcalloc(s->trace_count + 1, sizeof *order->at);
    for (size_t i = 0; i < s->trace_count; i++) {
        const struct snapshot_event *e;

        if (order->at[i] == s->traces[i].count)
            continue;
        e = &s->traces[i].events[order->at[i]];
        if (!first || e->time_us < first->time_us) {
            first = e;
            *device = (unsigned)i;
        }
    }
    if (first)
        *place = order->at[*device]++;
    return first;
}

void snapshot_order_fini(struct snapshot_order *order)
{
    free(order->at);
    order->at = NULL;
}
