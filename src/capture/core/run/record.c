/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/record.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "capture/core/work/stream_capture.h"
#include "capture/core/work/kernel.h"
#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/process.h"
#include "capture/core/torch/tag.h"
#include "common/trace/session_table.h"
#include "common/trace/trace_write.h"

#define NAME_BUCKETS (1u << 16)
#define NAMES_MAX    (1u << 20)

struct name {
    const char *text;
    struct name *next; /* in its bucket */
    uint32_t id;       /* 1, 2, ... */
};

static struct trace_writer writer = TRACE_WRITER_INIT;
static struct name **buckets;
static struct name **names; /* by id - 1 */
static uint32_t name_count;

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t memsim_clock_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint32_t record_thread(void)
{
    static _Atomic uint32_t threads;
    static _Thread_local uint32_t mine; /* 1 + number */

    if (!mine)
        mine = atomic_fetch_add(&threads, 1) + 1;
    return mine - 1;
}

/* Takes the writer; returns the time of what is to be recorded. */
static inline uint64_t writer_take(clockid_t clock)
{
    core_lock(LOCK_RECORD);
    uint64_t now_ns = clock_ns(clock);
    return now_ns > writer.time_ns ? now_ns : writer.time_ns;
}

void memsim_record_text(enum trace_kind kind, const uint64_t *fields,
                        size_t count, const char *text, size_t text_bytes)
{
    if (capture_is_on())
        capture_work(kind, fields);
    uint32_t thread = record_thread();
    uint64_t now_ns = writer_take(CLOCK_MONOTONIC);
    trace_writer_put(&writer, kind, thread, now_ns, fields, count, text,
                     text_bytes);
    core_unlock(LOCK_RECORD);
}

void memsim_record(enum trace_kind kind, const uint64_t *fields, size_t count)
{
    memsim_record_text(kind, fields, count, NULL, 0);
}

/* Inline, so that COUNT is a constant. */
static inline __attribute__((always_inline)) void
record_block(enum trace_kind kind, const void *fields, size_t count)
{
    uint32_t thread = record_thread();
    uint64_t now_ns = writer_take(CLOCK_MONOTONIC_COARSE);

    trace_writer_put(&writer, kind, thread, now_ns, fields, count, NULL, 0);
    core_unlock(LOCK_RECORD);
}

void record_block_alloc(const struct trace_block_alloc *fields)
{
    record_block(TRACE_BLOCK_ALLOC, fields, TRACE_WORD_COUNT(BLOCK_ALLOC));
}

void record_block_free(const struct trace_block_free *fields)
{
    record_block(TRACE_BLOCK_FREE, fields, TRACE_WORD_COUNT(BLOCK_FREE));
}

static __attribute__((noinline)) void launch_captured(uint64_t stream)
{
    capture_work(TRACE_LAUNCH, TRACE_WORDS(LAUNCH, .stream = stream));
}

void record_launch(uint32_t name, int device, const struct kernel_launch *l,
                   enum trace_rule rule, const uint64_t words[4])
{
    if (capture_is_on())
        launch_captured(l->stream);
    uint32_t thread = record_thread();
    uint64_t now_ns = writer_take(CLOCK_MONOTONIC);
    const struct trace_launch launch = {
        .name = name,
        .device = (uint64_t)device,
        .stream = l->stream,
        .grid_x_y = trace_pack(l->grid[0], l->grid[1]),
        .grid_z_block_x = trace_pack(l->grid[2], l->block[0]),
        .block_y_z = trace_pack(l->block[1], l->block[2]),
        .shared_bytes_rule = trace_pack(l->shared_bytes, rule),
        .a = words[0],
        .b = words[1],
        .c = words[2],
        .d = words[3]};
    if (!launch.grid_x_y || !launch.grid_z_block_x || !launch.block_y_z)
        __builtin_unreachable(); /* launch_check() refused those */
    trace_writer_put(&writer, TRACE_LAUNCH, thread, now_ns,
                     (const uint64_t *)&launch, TRACE_WORD_COUNT(LAUNCH), NULL,
                     0);
    core_unlock(LOCK_RECORD);
}

static uint32_t text_hash(const char *text)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h % NAME_BUCKETS;
}

static struct name *name_add(const char *text, struct name **bucket)
{
    size_t length = strlen(text);
    struct name *name = memsim_pages_keep(sizeof *name + length + 1);

    if (!name || name_count == NAMES_MAX)
        return NULL;
    name->text = memcpy(name + 1, text, length + 1);
    name->id = ++name_count;
    name->next = *bucket;
    *bucket = name;
    names[name->id - 1] = name;
    return name;
}

static void name_record(const struct name *name)
{
    RECORD_TEXT(NAME, name->text, strlen(name->text), .name = name->id);
}

static struct name *name_intern(const char *text)
{
    if (!names) {
        names = memsim_pages_reserve(0, NAMES_MAX * sizeof *names);
        buckets = memsim_pages_reserve(0, NAME_BUCKETS * sizeof *buckets);
    }
    if (!names || !buckets)
        return NULL;
    struct name **bucket = &buckets[text_hash(text)];
    for (struct name *name = *bucket; name; name = name->next)
        if (!strcmp(name->text, text))
            return name;
    struct name *name = name_add(text, bucket);
    if (name)
        name_record(name);
    return name;
}

uint32_t memsim_name(const char *text)
{
    core_lock(LOCK_NAME);
    const struct name *name = name_intern(text);
    core_unlock(LOCK_NAME);
    return name ? name->id : 0;
}

const char *record_name(uint32_t id)
{
    return names[id - 1]->text;
}

void record_open(struct session *session, uint32_t number)
{
    char path[sizeof session->directory + 32];
    struct err err = {0};

    session_trace_path(session->directory, number, path, sizeof path);
    if (trace_writer_open(&writer, path, session->trace_limit_bytes, &err))
        memsim_note("%s; the figures below are complete all the same",
                    err.text);
    core_lock(LOCK_NAME);
    for (uint32_t i = 0; i < name_count; i++)
        name_record(names[i]);
    core_unlock(LOCK_NAME);
    tag_modules_record();
}

uint32_t record_close(uint32_t status)
{
    core_lock(LOCK_RECORD);
    trace_writer_exit(&writer, status, record_thread(), memsim_clock_ns());
    core_unlock(LOCK_RECORD);
    return writer.end_reason;
}

void record_after_fork(void)
{
    trace_writer_abandon(&writer);
}
