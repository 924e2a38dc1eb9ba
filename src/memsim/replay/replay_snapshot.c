/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/replay.h"

#include <stdlib.h>

static const enum replay_kind kinds[] = {
    [ALLOC_ALLOC] = REPLAY_ALLOC,
    [ALLOC_FREE_REQUESTED] = REPLAY_FREE,
    [ALLOC_FREE_COMPLETED] = REPLAY_FREE_DONE,
    [ALLOC_SEGMENT_ALLOC] = REPLAY_SEGMENT,
    [ALLOC_SEGMENT_FREE] = REPLAY_SEGMENT,
    [ALLOC_SEGMENT_MAP] = REPLAY_SEGMENT,
    [ALLOC_SEGMENT_UNMAP] = REPLAY_SEGMENT,
    [ALLOC_SNAPSHOT] = REPLAY_KINDS,
    [ALLOC_OOM] = REPLAY_OOM,
};

/* A free that completes at once is two events in a row (free, free_block). */
static bool is_completion(const struct snapshot_trace *t, size_t at)
{
    return at && at < t->count &&
           t->events[at].action == ALLOC_FREE_COMPLETED &&
           t->events[at - 1].action == ALLOC_FREE_REQUESTED &&
           t->events[at].address == t->events[at - 1].address;
}

static void op_fill(struct replay_op *op, const struct replay_snapshot *r,
                    const struct snapshot_event *e, unsigned device)
{
    *op = (struct replay_op){
        .kind = kinds[e->action],
        .action = e->action,
        .device = device,
        .index = r->index,
        .address = e->address,
        .bytes = e->bytes,
        .stream = e->stream,
        .time_ns = e->time_us * 1000,
        .pool = e->pool,
    };
}

static int next_op(void *context, struct replay_op *op, struct err *err)
{
    struct replay_snapshot *r = context;
    const struct snapshot_event *e;
    unsigned device;
    size_t at;

    (void)err;
    for (; (e = snapshot_order_next(&r->order, &device, &at)); r->index++) {
        const struct snapshot_trace *t = &r->snapshot->traces[device];

        if (is_completion(t, at) || kinds[e->action] == REPLAY_KINDS)
            continue;
        op_fill(op, r, e, device);
        op->deferred = op->kind == REPLAY_FREE && !is_completion(t, at + 1);
        r->index++;
        return 1;
    }
    return 0;
}

static int begin_again(void *context, struct err *err)
{
    struct replay_snapshot *r = context;

    (void)err;
    snapshot_order_fini(&r->order);
    r->index = 0;
    return 0;
}

static void initial_take(struct replay_snapshot *r, struct snapshot *part)
{
    for (size_t i = 0; i < part->segment_count; i++) {
        *snapshot_add_segment(&r->initial) = part->segments[i];
        part->segments[i].blocks = NULL;
    }
    snapshot_fini(part);
}

static unsigned device_count(const struct snapshot *s)
{
    unsigned count = (unsigned)s->trace_count;

    for (size_t i = 0; i < s->segment_count; i++)
        if (s->segments[i].device >= count)
            count = s->segments[i].device + 1;
    return count;
}

int replay_snapshot_open(struct replay_snapshot *r,
                         const struct snapshot *snapshot,
                         const struct alloc_conf *conf, const char *name,
                         struct err *err)
{
    unsigned devices = device_count(snapshot);

    *r = (struct replay_snapshot){
        .snapshot = snapshot,
        .order = {.snapshot = snapshot},
        .name = name,
        .complete = true,
    };
    if (devices > REPLAY_DEVICES)
        return err_set(err, "%s:0: %u devices; at most %d can be replayed",
                       name, devices, REPLAY_DEVICES);
    for (unsigned device = 0; device < devices; device++) {
        struct snapshot part;

        if (snapshot_rewind(snapshot, device, conf, name, &part, err)) {
            snapshot_fini(&r->initial);
            return -1;
        }
        r->complete &= part.segment_count == 0;
        initial_take(r, &part);
    }
    r->source = (struct replay_source){
        .context = r,
        .name = name,
        .next = next_op,
        .rewind = begin_again,
        .initial = &r->initial,
        .real_addresses = true,
    };
    return 0;
}

void replay_snapshot_close(struct replay_snapshot *r)
{
    snapshot_order_fini(&r->order);
    snapshot_fini(&r->initial);
}
