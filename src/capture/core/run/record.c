/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/record.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record_put.h"

#define NAME_BUCKETS (1u << 16)
#define NAMES_MAX    (1u << 20)

/* Shorter work of memsim's own is left in: to take it out costs as much. */
#define SKIP_NS 1000

struct name {
    const char *text;
    struct name *next; /* in its bucket */
    uint32_t id;       /* 1, 2, ... */
};

struct trace_writer record_writer = TRACE_WRITER_INIT;
uint32_t record_worker;
_Thread_local bool record_worked;
static struct name **buckets;
static struct name **names; /* by id - 1 */
static uint32_t name_count;

uint32_t record_thread(void)
{
    static _Atomic uint32_t threads;
    static _Thread_local uint32_t mine; /* 1 + number */

    if (!mine)
        mine = atomic_fetch_add(&threads, 1) + 1;
    return mine - 1;
}

static uint64_t record_held(void)
{
    return atomic_load_explicit(&clock_held_ns, memory_order_relaxed);
}

/* A gap before that work is looked into first, as before a record. */
void record_skip(uint64_t start_ns)
{
    uint64_t took_ns = clock_host(CLOCK_MONOTONIC) - start_ns;

    if (took_ns < SKIP_NS)
        return;
    core_lock(LOCK_RECORD);
    uint64_t before_ns = record_held(), last_ns = record_writer.time_ns;
    uint64_t at_ns = start_ns - before_ns;

    if (record_worker == record_thread()) {
        uint64_t from_ns = at_ns > last_ns ? start_ns : last_ns + before_ns;
        uint64_t own_ns = clock_host(CLOCK_MONOTONIC) - from_ns;
        if (at_ns > last_ns)
            clock_gap(last_ns, at_ns); /* takes its own time out, too */
        uint64_t then_ns = clock_host(CLOCK_MONOTONIC);
        clock_gap_skip(took_ns);
        uint64_t now_ns = clock_host(CLOCK_MONOTONIC);
        atomic_fetch_add_explicit(&clock_held_ns, own_ns + now_ns - then_ns,
                                  memory_order_relaxed);
        clock_set_back(now_ns, record_held() - before_ns);
    }
    core_unlock(LOCK_RECORD);
}

void memsim_record_text(enum trace_kind kind, const uint64_t *fields,
                        size_t count, const char *text, size_t text_bytes)
{
    record_put(&(struct trace_put){.kind = kind,
                                   .fields = fields,
                                   .count = count,
                                   .text = text,
                                   .text_bytes = text_bytes},
               false);
}

void memsim_record(enum trace_kind kind, const uint64_t *fields, size_t count)
{
    record_put(&(struct trace_put){.kind = kind,
                                   .fields = fields,
                                   .count = count},
               false);
}

/* Where the trace ends, if its last record is a query. Under LOCK_RECORD. */
static struct {
    uint64_t round; /* counts from 1 */
    uint64_t time_ns, used_bytes;
} asked;

static uint64_t used_bytes(void)
{
    return record_writer.chunk ? record_writer.chunk->used_bytes : 0;
}

/* Under LOCK_RECORD: whether a query that is answered READY repeats *LAST. */
static bool query_repeats(bool ready, struct record_answer *last)
{
    if (!asked.round || asked.time_ns != record_writer.time_ns ||
        asked.used_bytes != used_bytes())
        asked.round++;
    bool repeats = last->round == asked.round && last->ready == ready;
    *last = (struct record_answer){asked.round, ready};
    return repeats;
}

/* A thread that does nothing but ask, as NCCL's watchdog in PyTorch, takes none
 * of the program's time: its records bear the time of the one before. Otherwise
 * they would cut in pieces, each too short to be looked into, the gap in which
 * another thread waits for a CPU. */
void record_query(enum trace_kind kind, const uint64_t *fields, size_t count,
                  bool ready, struct record_answer *last)
{
    struct trace_put query = {.kind = kind,
                              .thread = record_thread(),
                              .fields = fields,
                              .count = count};

    core_lock(LOCK_RECORD);
    if (!query_repeats(ready, last)) {
        query.time_ns = record_writer.time_ns;
        if (record_worked)
            record_stamp(&query, false);
        trace_writer_put(&record_writer, &query);
    }
    asked.time_ns = record_writer.time_ns;
    asked.used_bytes = used_bytes();
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

void record_open(struct session *session, const char *path)
{
    struct err err = {0};

    if (trace_writer_open(&record_writer, path, session->trace_limit_bytes,
                          &err))
        memsim_note("%s; the figures below are complete all the same",
                    err.text);
    core_lock(LOCK_NAME);
    for (uint32_t i = 0; i < name_count; i++)
        name_record(names[i]);
    core_unlock(LOCK_NAME);
}

uint32_t record_close(uint32_t status)
{
    core_lock(LOCK_RECORD);
    trace_writer_exit(&record_writer, status, record_thread(), clock_now());
    core_unlock(LOCK_RECORD);
    return record_writer.end_reason;
}

void record_after_fork(void)
{
    trace_writer_abandon(&record_writer);
}
