/* SPDX-License-Identifier: Apache-2.0
 * A pickle of protocol 2: every Python reads it. What comes again, keys, stacks
 * and their texts, is written once and then named by its number in the memo. */
#include <stdlib.h>
#include <string.h>

#include "common/base/simulated.h"
#include "common/base/xmalloc.h"
#include "memsim/snapshot/snapshot.h"

#define KEYS_MAX 64

struct writer {
    FILE *out;
    const struct snapshot_frames *frames;
    uint32_t memo_count;
    const char *keys[KEYS_MAX]; /* constants, by their addresses */
    uint32_t key_memos[KEYS_MAX];
    size_t key_count;
    uint32_t *text_memos, *stack_memos; /* 1 + the memo's number; 0: none */
};

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

/* LONG_BINPUT of what was written last; returns its number. */
static uint32_t put_memo(struct writer *w)
{
    fputc('r', w->out);
    put_number(w->out, w->memo_count, 4);
    return w->memo_count++;
}

/* BINGET or LONG_BINGET. */
static void put_again(const struct writer *w, uint32_t memo)
{
    fputc(memo <= 0xff ? 'h' : 'j', w->out);
    put_number(w->out, memo, memo <= 0xff ? 1 : 4);
}

/* A text that is a constant of the program. */
static void put_key(struct writer *w, const char *key)
{
    size_t i = 0;

    while (i < w->key_count && w->keys[i] != key)
        i++;
    if (i < w->key_count) {
        put_again(w, w->key_memos[i]);
        return;
    }
    put_text(w->out, key);
    if (i == KEYS_MAX)
        return;
    w->keys[w->key_count] = key;
    w->key_memos[w->key_count++] = put_memo(w);
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

static void key_int(struct writer *w, const char *key, uint64_t value)
{
    put_key(w, key);
    put_int(w->out, value);
}

static void key_pool(struct writer *w, struct alloc_pool_id id)
{
    put_key(w, "segment_pool_id");
    put_int(w->out, id.first);
    put_int(w->out, id.second);
    fputc(0x86, w->out); /* TUPLE2 */
}

static void put_frame_text(struct writer *w, uint32_t place)
{
    if (w->text_memos[place]) {
        put_again(w, w->text_memos[place] - 1);
        return;
    }
    put_text(w->out, w->frames->texts[place]);
    w->text_memos[place] = 1 + put_memo(w);
}

/* "}(" ... "u" is a dict, "](" ... "e" a list. */
static void put_frame(struct writer *w, const struct snapshot_frame *frame)
{
    fputs("}(", w->out);
    put_key(w, "filename");
    put_frame_text(w, frame->file);
    key_int(w, "line", frame->line);
    put_key(w, "name");
    put_frame_text(w, frame->name);
    fputc('u', w->out);
}

static void key_frames(struct writer *w, uint32_t stack)
{
    put_key(w, "frames");
    if (!stack) {
        fputc(']', w->out);
        return;
    }
    if (w->stack_memos[stack - 1]) {
        put_again(w, w->stack_memos[stack - 1] - 1);
        return;
    }
    const struct snapshot_stack *s = &w->frames->stacks[stack - 1];
    fputs("](", w->out);
    for (size_t i = 0; i < s->count; i++)
        put_frame(w, &w->frames->frames[s->first + i]);
    fputc('e', w->out);
    w->stack_memos[stack - 1] = 1 + put_memo(w);
}

static void put_block(struct writer *w, const struct snapshot_block *b)
{
    static const char *const states[] = {
        [SNAPSHOT_INACTIVE] = "inactive",
        [SNAPSHOT_ALLOCATED] = "active_allocated",
        [SNAPSHOT_AWAITING_FREE] = "active_pending_free",
    };

    fputs("}(", w->out);
    key_int(w, "address", b->address);
    key_int(w, "size", b->bytes);
    key_int(w, "requested_size", b->requested_bytes);
    put_key(w, "state");
    put_key(w, states[b->state]);
    key_frames(w, b->stack);
    fputc('u', w->out);
}

static void put_sums(struct writer *w, const struct snapshot_segment *g)
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
    key_int(w, "allocated_size", allocated);
    key_int(w, "active_size", active);
    key_int(w, "requested_size", requested);
}

static void put_segment(struct writer *w, const struct snapshot_segment *g)
{
    fputs("}(", w->out);
    key_int(w, "device", g->device);
    key_int(w, "address", g->address);
    key_int(w, "total_size", g->bytes);
    put_sums(w, g);
    key_int(w, "stream", g->stream);
    put_key(w, "segment_type");
    put_key(w, g->small ? "small" : "large");
    key_pool(w, g->pool);
    put_key(w, "is_expandable");
    put_bool(w->out, g->expandable);
    key_frames(w, 0);
    put_key(w, "blocks");
    fputs("](", w->out);
    for (size_t i = 0; i < g->block_count; i++)
        put_block(w, &g->blocks[i]);
    fputs("eu", w->out);
}

static void put_event(struct writer *w, const struct snapshot_event *e)
{
    fputs("}(", w->out);
    put_key(w, "action");
    put_key(w, snapshot_action_name(e->action));
    key_int(w, e->action == ALLOC_OOM ? "device_free" : "addr", e->address);
    key_int(w, "size", e->bytes);
    key_int(w, "stream", e->stream);
    key_int(w, "time_us", e->time_us);
    key_pool(w, e->pool);
    key_frames(w, e->stack);
    fputc('u', w->out);
}

static void put_trace(struct writer *w, const struct snapshot_trace *t)
{
    fputs("](", w->out);
    for (size_t i = 0; i < t->count; i++)
        put_event(w, &t->events[i]);
    fputc('e', w->out);
}

static void put_settings(struct writer *w, const struct snapshot *s)
{
    put_key(w, "allocator_settings");
    fputs("}(", w->out);
    put_key(w, "PYTORCH_CUDA_ALLOC_CONF");
    put_text(w->out, s->settings ? s->settings : "");
    if (s->torch_version) {
        put_key(w, SNAPSHOT_TORCH_KEY);
        put_text(w->out, s->torch_version);
    }
    fputc('u', w->out);
}

int snapshot_write(const struct snapshot *s, FILE *out)
{
    struct writer w = {
        .out = out,
        .frames = &s->frames,
        .text_memos = xcalloc(s->frames.text_count + 1, sizeof(uint32_t)),
        .stack_memos = xcalloc(s->frames.stack_count + 1, sizeof(uint32_t)),
    };

    fputs("\x80\x02}(", out);
    put_key(&w, "segments");
    fputs("](", out);
    for (size_t i = 0; i < s->segment_count; i++)
        put_segment(&w, &s->segments[i]);
    fputc('e', out);
    put_key(&w, "device_traces");
    fputs("](", out);
    for (size_t i = 0; i < s->trace_count; i++)
        put_trace(&w, &s->traces[i]);
    fputc('e', out);
    put_settings(&w, s);
    put_key(&w, "external_annotations");
    fputc(']', out);
    put_key(&w, SIMULATED_KEY);
    put_text(out, SIMULATED_TEXT);
    fputs("u.", out);
    free(w.text_memos);
    free(w.stack_memos);
    return fflush(out) || ferror(out) ? -1 : 0;
}
