/* SPDX-License-Identifier: Apache-2.0
 * A pickle of protocol 2: every Python reads it. */
#include <stdlib.h>
#include <string.h>

#include "memsim/snapshot/snapshot.h"

static void put_number(FILE *out, uint64_t n, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(n >> (8 * i) & 0xff), out);
}

static void put_text(FILE *out, const char *text)
{
    fputc('X', out); /* BINUNICODE */
    put_number(out, strlen(text), 4);
    fputs(text, out);
}

/* BININT1, BININT2 or LONG1 of nine bytes: the last keeps it from being
 * negative. */
static void put_int(FILE *out, uint64_t n)
{
    if (n <= 0xffff) {
        fputc(n <= 0xff ? 'K' : 'M', out);
        put_number(out, n, n <= 0xff ? 1 : 2);
        return;
    }
    fputc(0x8a, out);
    fputc(9, out);
    put_number(out, n, 8);
    fputc(0, out);
}

static void put_bool(FILE *out, bool value)
{
    fputc(value ? 0x88 : 0x89, out);
}

static void key_int(FILE *out, const char *key, uint64_t value)
{
    put_text(out, key);
    put_int(out, value);
}

static void key_text(FILE *out, const char *key, const char *value)
{
    put_text(out, key);
    put_text(out, value);
}

static void key_pool(FILE *out, struct alloc_pool_id id)
{
    put_text(out, "segment_pool_id");
    put_int(out, id.first);
    put_int(out, id.second);
    fputc(0x86, out); /* TUPLE2 */
}

static void key_frames(FILE *out)
{
    put_text(out, "frames");
    fputc(']', out);
}

/* "}(" ... "u" is a dict, "](" ... "e" a list. */
static void put_block(FILE *out, const struct snapshot_block *b)
{
    static const char *const states[] = {
        [SNAPSHOT_INACTIVE] = "inactive",
        [SNAPSHOT_ALLOCATED] = "active_allocated",
        [SNAPSHOT_AWAITING_FREE] = "active_pending_free",
    };

    fputs("}(", out);
    key_int(out, "address", b->address);
    key_int(out, "size", b->bytes);
    key_int(out, "requested_size", b->requested_bytes);
    key_text(out, "state", states[b->state]);
    key_frames(out);
    fputc('u', out);
}

static void put_sums(FILE *out, const struct snapshot_segment *g)
{
    uint64_t allocated = 0, active = 0, requested = 0;

    for (size_t i = 0; i < g->block_count; i++) {
        const struct snapshot_block *b = &g->blocks[i];

        if (b->state == SNAPSHOT_ALLOCATED)
            allocated += b->bytes;
        if (b->state == SNAPSHOT_INACTIVE)
            continue;
        active += b->bytes;
        requested += b->requested_bytes;
    }
    key_int(out, "allocated_size", allocated);
    key_int(out, "active_size", active);
    key_int(out, "requested_size", requested);
}

static void put_segment(FILE *out, const struct snapshot_segment *g)
{
    fputs("}(", out);
    key_int(out, "device", g->device);
    key_int(out, "address", g->address);
    key_int(out, "total_size", g->bytes);
    put_sums(out, g);
    key_int(out, "stream", g->stream);
    key_text(out, "segment_type", g->small ? "small" : "large");
    key_pool(out, g->pool);
    put_text(out, "is_expandable");
    put_bool(out, g->expandable);
    key_frames(out);
    put_text(out, "blocks");
    fputs("](", out);
    for (size_t i = 0; i < g->block_count; i++)
        put_block(out, &g->blocks[i]);
    fputs("eu", out);
}

static void put_event(FILE *out, const struct snapshot_event *e)
{
    fputs("}(", out);
    key_text(out, "action", snapshot_action_name(e->action));
    key_int(out, e->action == ALLOC_OOM ? "device_free" : "addr", e->address);
    key_int(out, "size", e->bytes);
    key_int(out, "stream", e->stream);
    key_int(out, "time_us", e->time_us);
    key_pool(out, e->pool);
    key_frames(out);
    fputc('u', out);
}

static void put_trace(FILE *out, const struct snapshot_trace *t)
{
    fputs("](", out);
    for (size_t i = 0; i < t->count; i++)
        put_event(out, &t->events[i]);
    fputc('e', out);
}

int snapshot_write(const struct snapshot *s, FILE *out)
{
    fputs("\x80\x02}(", out);
    put_text(out, "segments");
    fputs("](", out);
    for (size_t i = 0; i < s->segment_count; i++)
        put_segment(out, &s->segments[i]);
    fputc('e', out);
    put_text(out, "device_traces");
    fputs("](", out);
    for (size_t i = 0; i < s->trace_count; i++)
        put_trace(out, &s->traces[i]);
    fputc('e', out);
    put_text(out, "allocator_settings");
    fputs("}(", out);
    key_text(out, "PYTORCH_CUDA_ALLOC_CONF", s->settings ? s->settings : "");
    if (s->torch_version)
        key_text(out, SNAPSHOT_TORCH_KEY, s->torch_version);
    fputc('u', out);
    put_text(out, "external_annotations");
    fputs("]u.", out);
    return fflush(out) || ferror(out) ? -1 : 0;
}
