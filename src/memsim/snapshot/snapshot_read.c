/* SPDX-License-Identifier: Apache-2.0
 * The dicts and lists that torch/csrc/cuda/Module.cpp (THCPModule_
 * memorySnapshot) builds, read back. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_open.h"
#include "common/base/simulated.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "common/base/pickle.h"
#include "memsim/snapshot/snapshot.h"

enum { MOST_DEVICES = 1024 };

struct reader {
    const char *origin;
    struct err *err;
    struct snapshot *snapshot;
    uint64_t budget; /* steps left; see pickle_find */
    struct map texts;  /* 1 + place in the frames' texts, by where it begins */
    struct map stacks; /* numbers of stacks, by their lists */
};

static int snapshot_fail(struct reader *r, const char *place, size_t index,
                         const char *cause)
{
    return err_set(r->err, "%s:%s %zu: %s", r->origin, place, index, cause);
}

static int spend_value(struct reader *r)
{
    if (!r->budget)
        return err_set(r->err,
                       "%s:0: the same parts occur over and over; "
                       "this is no memory snapshot",
                       r->origin);
    r->budget--;
    return 0;
}

static const struct pickle_value *
member_find(struct reader *r, const struct pickle_value *dict, const char *key)
{
    return pickle_find(dict, key, &r->budget);
}

/* The number under KEY; where there is none, FALLBACK. */
static uint64_t number_read(struct reader *r, const struct pickle_value *dict,
                            const char *key, uint64_t fallback)
{
    const struct pickle_value *v = member_find(r, dict, key);

    return v && v->type <= PICKLE_INT && v->type != PICKLE_NONE
               ? (uint64_t)v->number
               : fallback;
}

static bool text_is(const struct pickle_value *v, const char *text)
{
    return v && v->type == PICKLE_STRING && v->text_bytes == strlen(text) &&
           !memcmp(v->text, text, v->text_bytes);
}

static struct alloc_pool_id
pool_id(struct reader *r, const struct pickle_value *dict, const char *key)
{
    const struct pickle_value *v = member_find(r, dict, key);
    const struct pickle_value *a = pickle_item(v, 0), *b = pickle_item(v, 1);

    if (!a || !b || a->type != PICKLE_INT || b->type != PICKLE_INT)
        return (struct alloc_pool_id){0, 0};
    return (struct alloc_pool_id){(uint64_t)a->number, (uint64_t)b->number};
}

static bool state_find(const struct pickle_value *v, enum snapshot_state *state)
{
    static const struct {
        const char *name;
        enum snapshot_state state;
    } names[] = {
        {"inactive", SNAPSHOT_INACTIVE},
        {"active_allocated", SNAPSHOT_ALLOCATED},
        {"active_pending_free", SNAPSHOT_AWAITING_FREE},
        {"active_awaiting_free", SNAPSHOT_AWAITING_FREE}, /* as documented */
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_is(v, names[i].name)) {
            *state = names[i].state;
            return true;
        }
    return false;
}

/* The place in the frames' texts of V, which the input has once. */
static uint32_t read_frame_text(struct reader *r, const struct pickle_value *v)
{
    bool is_text = v && v->type == PICKLE_STRING;
    const char *text = is_text ? v->text : "";
    uintptr_t place = (uintptr_t)map_get(&r->texts, (uintptr_t)text);

    if (!place) {
        place = 1 + snapshot_frames_text(&r->snapshot->frames, text,
                                         is_text ? v->text_bytes : 0);
        map_put(&r->texts, (uintptr_t)text, (void *)place);
    }
    return (uint32_t)(place - 1);
}

/* The stack that DICT has; lists that several share are read once. What is no
 * list of frames is no stack. */
static uint32_t read_stack(struct reader *r, const struct pickle_value *dict)
{
    const struct pickle_value *list = member_find(r, dict, "frames");

    if (!list || list->type != PICKLE_LIST || !pickle_count(list))
        return 0;
    uintptr_t stack = (uintptr_t)map_get(&r->stacks, (uintptr_t)list->items);
    if (stack)
        return (uint32_t)stack;
    for (size_t i = 0; i < pickle_count(list) && r->budget; i++) {
        const struct pickle_value *frame = pickle_item(list, i);

        r->budget--;
        snapshot_frames_add(
            &r->snapshot->frames,
            read_frame_text(r, member_find(r, frame, "filename")),
            read_frame_text(r, member_find(r, frame, "name")),
            (uint32_t)number_read(r, frame, "line", 0));
    }
    stack = snapshot_frames_close(&r->snapshot->frames);
    if (stack)
        map_put(&r->stacks, (uintptr_t)list->items, (void *)stack);
    return (uint32_t)stack;
}

/* Old snapshots give no addresses: a block follows the one before, at AT. */
static int read_block(struct reader *r, const struct pickle_value *from,
                      uint64_t at, struct snapshot_block *b)
{
    b->bytes = number_read(r, from, "size", 0);
    b->address = number_read(r, from, "address", at);
    b->requested_bytes = number_read(r, from, "requested_size", b->bytes);
    b->stack = read_stack(r, from);
    return state_find(member_find(r, from, "state"), &b->state) ? 0 : -1;
}

static int read_blocks(struct reader *r, const struct pickle_value *blocks,
                       size_t index, struct snapshot_segment *g)
{
    uint64_t at = g->address;
    size_t count = pickle_count(blocks);

    if (!blocks || blocks->type != PICKLE_LIST)
        return snapshot_fail(r, "segment", index, "no blocks");
    /* Each element is paid for before its room is taken. */
    for (size_t i = 0, capacity = 0; i < count; i++) {
        if (spend_value(r))
            return -1;
        xgrow(&g->blocks, g->block_count, &capacity, sizeof *g->blocks);
        struct snapshot_block *b = &g->blocks[g->block_count++];
        if (read_block(r, pickle_item(blocks, i), at, b))
            return snapshot_fail(r, "segment", index,
                                 "a block without a known state");
        at = b->address + b->bytes;
    }
    return 0;
}

static int read_segment(struct reader *r, const struct pickle_value *from,
                        size_t index)
{
    struct snapshot_segment *g = snapshot_add_segment(r->snapshot);
    const struct pickle_value *type = member_find(r, from, "segment_type");
    uint64_t device = number_read(r, from, "device", 0);

    g->address = number_read(r, from, "address", 0);
    g->bytes = number_read(r, from, "total_size", 0);
    g->stream = number_read(r, from, "stream", 0);
    g->expandable = number_read(r, from, "is_expandable", 0) != 0;
    g->pool = pool_id(r, from, "segment_pool_id");
    g->small = text_is(type, "small");
    if (device >= MOST_DEVICES)
        return snapshot_fail(r, "segment", index, "no such device");
    g->device = (unsigned)device;
    if (!g->small && !text_is(type, "large"))
        return snapshot_fail(r, "segment", index, "neither small nor large");
    return read_blocks(r, member_find(r, from, "blocks"), index, g);
}

static int read_segments(struct reader *r, const struct pickle_value *segments)
{
    if (!segments || segments->type != PICKLE_LIST)
        return err_set(r->err,
                       "%s:0: no list of segments; this is no memory "
                       "snapshot",
                       r->origin);
    for (size_t i = 0; i < pickle_count(segments); i++)
        if (spend_value(r) || read_segment(r, pickle_item(segments, i), i))
            return -1;
    return 0;
}

static int read_event(struct reader *r, const struct pickle_value *from,
                      unsigned device, size_t index)
{
    const struct pickle_value *action = member_find(r, from, "action");
    struct snapshot_event e = {.action = ALLOC_ACTIONS};

    if (text_is(action, "annotate")) /* a note on a block, from 2.15 on */
        return 0;
    for (int i = 0; i <= ALLOC_OOM && e.action == ALLOC_ACTIONS; i++)
        if (text_is(action, snapshot_action_name((enum alloc_action)i)))
            e.action = (enum alloc_action)i;
    if (e.action == ALLOC_ACTIONS)
        return snapshot_fail(r, "event", index, "an unknown action");
    e.address =
        number_read(r, from, e.action == ALLOC_OOM ? "device_free" : "addr", 0);
    e.bytes = number_read(r, from, "size", 0);
    e.stream = number_read(r, from, "stream", 0);
    e.time_us = number_read(r, from, "time_us", 0);
    e.pool = pool_id(r, from, "segment_pool_id");
    if (member_find(r, from,
                    "pool_id")) /* PyTorch's name for it, from 2.12 on */
        e.pool = pool_id(r, from, "pool_id");
    e.stack = read_stack(r, from);
    snapshot_add_event(r->snapshot, device, &e);
    return 0;
}

static int read_traces(struct reader *r, const struct pickle_value *traces)
{
    size_t count = pickle_count(traces);

    if (count > MOST_DEVICES)
        return err_set(r->err, "%s:0: %zu devices", r->origin, count);
    for (unsigned device = 0; device < count; device++) {
        const struct pickle_value *t = pickle_item(traces, device);

        for (size_t i = 0; i < pickle_count(t); i++)
            if (spend_value(r) || read_event(r, pickle_item(t, i), device, i))
                return -1;
    }
    return 0;
}

/* Does the first event of any device have KEY? */
static bool events_have(struct reader *r, const struct pickle_value *traces,
                        const char *key)
{
    for (size_t i = 0; i < pickle_count(traces); i++) {
        const struct pickle_value *trace = pickle_item(traces, i);

        if (pickle_count(trace))
            return member_find(r, pickle_item(trace, 0), key) != NULL;
    }
    return false;
}

/* A snapshot does not say who wrote it, but there are keys that 2.13 has and
 * 2.12 has not, and so on; the last 2.9 has and 2.6 has not. */
static const char *oldest_writer(struct reader *r,
                                 const struct pickle_value *root)
{
    const struct pickle_value *settings =
        member_find(r, root, "allocator_settings");

    if (member_find(r, settings, "max_round_threshold"))
        return "2.13";
    if (events_have(r, member_find(r, root, "device_traces"), "pool_id"))
        return "2.12";
    return member_find(r, settings, "graph_capture_record_stream_reuse")
               ? "2.11"
               : "2.6";
}

static char *read_text(struct reader *r, const struct pickle_value *dict,
                       const char *key)
{
    const struct pickle_value *text = member_find(r, dict, key);

    if (!text || text->type != PICKLE_STRING)
        return NULL;
    return xasprintf("%.*s", (int)text->text_bytes, text->text);
}

static void read_settings(struct reader *r, const struct pickle_value *settings)
{
    r->snapshot->settings = read_text(r, settings, "PYTORCH_CUDA_ALLOC_CONF");
    r->snapshot->torch_version = read_text(r, settings, SNAPSHOT_TORCH_KEY);
}

int snapshot_parse(const void *pickle, size_t bytes, const char *origin,
                   struct snapshot *snapshot, struct err *err)
{
    struct reader r = {.origin = origin,
                       .err = err,
                       .snapshot = snapshot,
                       .budget = 16 * (uint64_t)bytes + 4096};

    *snapshot = (struct snapshot){0};
    struct pickle *p = pickle_parse(pickle, bytes, origin, err);
    if (!p)
        return -1;
    const struct pickle_value *root = pickle_root(p);
    int rc = read_segments(&r, member_find(&r, root, "segments"));
    if (!rc)
        rc = read_traces(&r, member_find(&r, root, "device_traces"));
    if (!rc) {
        read_settings(&r, member_find(&r, root, "allocator_settings"));
        snapshot->simulated = member_find(&r, root, SIMULATED_KEY) != NULL;
        snapshot->since_version = oldest_writer(&r, root);
    }
    pickle_free(p);
    map_fini(&r.texts);
    map_fini(&r.stacks);
    if (!rc)
        rc = snapshot_check(snapshot, origin, err);
    if (rc)
        snapshot_fini(snapshot);
    return rc;
}

static int load_mapped(int fd, const char *path, struct snapshot *snapshot,
                       struct err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return err_set(err, "%s: %s", path, strerror(errno));
    if (st.st_size == 0)
        return err_set(err, "%s: is empty", path);
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return err_set(err, "%s: %s", path, strerror(errno));
    int rc = snapshot_parse(data, (size_t)st.st_size, path, snapshot, err);
    munmap(data, (size_t)st.st_size);
    return rc;
}

int snapshot_load(const char *path, struct snapshot *snapshot, struct err *err)
{
    int fd = file_open(path, err);

    *snapshot = (struct snapshot){0};
    if (fd < 0)
        return -1;
    int rc = load_mapped(fd, path, snapshot, err);
    close(fd);
    return rc;
}
