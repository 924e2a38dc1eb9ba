/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/record.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "capture/core/capture.h"
#include "capture/core/lock.h"
#include "capture/core/pages.h"
#include "capture/core/process.h"
#include "capture/core/tag.h"
#include "common/trace_write.h"

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

static inline __attribute__((always_inline)) void
put(enum trace_kind kind, clockid_t clock, const uint64_t *fields, size_t count,
    const char *text, size_t text_bytes)
{
    static uint64_t last_ns;

    if (atomic_load_explicit(&capture_count, memory_order_relaxed))
        capture_work(kind, fields);
    if (!writer.chunk)
        return;
    uint32_t thread = record_thread();
    core_lock(LOCK_RECORD);
    uint64_t now_ns = clock_ns(clock);
    if (now_ns > last_ns)
        last_ns = now_ns;
    trace_writer_put(&writer, kind, thread, last_ns, fields, count, text,
                     text_bytes);
    core_unlock(LOCK_RECORD);
}

void memsim_record_text(enum trace_kind kind, const uint64_t *fields,
                        size_t count, const char *text, size_t text_bytes)
{
    put(kind, CLOCK_MONOTONIC, fields, count, text, text_bytes);
}

void memsim_record(enum trace_kind kind, const uint64_t *fields, size_t count)
{
    put(kind, CLOCK_MONOTONIC, fields, count, NULL, 0);
}

void record_block(enum trace_kind kind, const uint64_t *fields, size_t count)
{
    put(kind, CLOCK_MONOTONIC_COARSE, fields, count, NULL, 0);
}

void record_launch(const uint64_t fields[RECORD_LAUNCH_FIELDS])
{
    put(TRACE_LAUNCH, CLOCK_MONOTONIC, fields, RECORD_LAUNCH_FIELDS, NULL, 0);
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
    uint64_t id = name->id;

    memsim_record_text(TRACE_NAME, &id, 1, name->text, strlen(name->text));
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

void record_open(struct session *session, uint32_t slot)
{
    char path[sizeof session->directory + 32];
    struct err err = {0};

    snprintf(path, sizeof path, "%s/" SESSION_TRACE, session->directory, slot);
    if (trace_writer_open(&writer, path, session->trace_limit_bytes, &err))
        memsim_note("%s; the figures below are complete all the same",
                    err.text);
    core_lock(LOCK_NAME);
    for (uint32_t i = 0; i < name_count; i++)
        name_record(names[i]);
    core_unlock(LOCK_NAME);
    tag_modules_record();
}

uint32_t record_close(enum trace_end reason)
{
    core_lock(LOCK_RECORD);
    trace_writer_close(&writer, reason, record_thread(), memsim_clock_ns());
    core_unlock(LOCK_RECORD);
    return writer.end_reason;
}

void record_after_fork(void)
{
    trace_writer_abandon(&writer);
}
