/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/activity.h"

#include <pthread.h>
#include <string.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/live.h"
#include "capture/core/run/record.h"

#define DEPTH_MAX 64 /* of tags; those deeper are counted alone */
#define HEARD_MAX 8  /* calls made under a lock of the core's, not yet told */

bool memsim_activity_on;

/* Under LOCK_RECORD. A ring that begins anew where it was emptied, so that a
 * profiler that takes them often touches little memory. */
static struct activity *kept;
static size_t first, count, lost;
static size_t fresh; /* the last ones, on the simulation's clock */
static bool keeps;
static void (*hears)(const struct activity *call);

static _Thread_local struct {
    uint64_t tags[ACTIVITY_TAG_KINDS][DEPTH_MAX];
    uint32_t depths[ACTIVITY_TAG_KINDS];
    enum activity_api api;
    uint64_t graph;
    struct activity heard[HEARD_MAX];
    uint32_t heard_count;
    bool is_hearing;
} mine;

uint64_t memsim_activity_calls(void)
{
    core_lock(LOCK_RECORD);
    uint64_t calls = live_calls();
    core_unlock(LOCK_RECORD);
    return calls;
}

static void activity_keep(const struct activity *a)
{
    if (count == ACTIVITIES_MAX) {
        lost++;
        return;
    }
    kept[(first + count++) % ACTIVITIES_MAX] = *a;
    fresh++;
}

static void note_timed(uint64_t origin_ns)
{
    origin_ns = clock_unix_of(origin_ns);
    for (; fresh; fresh--) {
        struct activity *a = &kept[(first + count - fresh) % ACTIVITIES_MAX];
        a->start_ns += origin_ns;
        a->end_ns += origin_ns;
    }
}

static void tags_put(const struct activity *call)
{
    struct activity a = {.what = ACTIVITY_TAG,
                         .call = call->call,
                         .thread = call->thread};

    for (uint32_t kind = 0; kind < ACTIVITY_TAG_KINDS; kind++) {
        uint32_t depth = mine.depths[kind];
        if (!depth)
            continue;
        a.tag_kind = kind;
        a.tag = mine.tags[kind][(depth < DEPTH_MAX ? depth : DEPTH_MAX) - 1];
        activity_keep(&a);
    }
}

static void call_complete(struct activity *a)
{
    a->thread = (uint32_t)pthread_self();
    a->api = mine.api;
    a->graph = mine.graph;
    mine.api = ACTIVITY_API_PLAIN;
    mine.graph = 0;
    if (hears && !mine.is_hearing && mine.heard_count < HEARD_MAX)
        mine.heard[mine.heard_count++] = *a;
}

/* A call of this thread or work. */
static void activity_put(struct activity *a)
{
    if (a->name_id && *record_name(a->name_id))
        a->name = record_name(a->name_id);
    if (a->what == ACTIVITY_CALL)
        call_complete(a);
    if (!keeps)
        return;
    if (a->what == ACTIVITY_CALL)
        tags_put(a);
    activity_keep(a);
}

static void note_forked(void)
{
    memsim_activity_on = keeps = false;
    hears = NULL;
    mine.heard_count = 0;
    first = count = lost = fresh = 0;
}

/* Under LOCK_RECORD. */
static void listen_forks(void)
{
    static const struct live_listener listener = {activity_put, note_timed,
                                                  note_forked};

    memsim_activity_on = keeps || hears;
    live_listen(memsim_activity_on ? &listener : NULL);
}

void memsim_activity_listen(bool on)
{
    core_lock(LOCK_RECORD);
    if (on && !kept)
        kept = memsim_pages_reserve(0, ACTIVITIES_MAX * sizeof *kept);
    keeps = on && kept;
    listen_forks();
    core_unlock(LOCK_RECORD);
}

void memsim_activity_hear(void (*hear)(const struct activity *call))
{
    core_lock(LOCK_RECORD);
    __atomic_store_n(&hears, hear, __ATOMIC_RELEASE);
    listen_forks();
    core_unlock(LOCK_RECORD);
}

void activity_tell(void)
{
    struct activity calls[HEARD_MAX];
    uint32_t n = mine.heard_count;

    if (!n || core_locks_held)
        return;
    memcpy(calls, mine.heard, n * sizeof *calls);
    mine.heard_count = 0;
    mine.is_hearing = true;
    for (uint32_t i = 0; i < n; i++) {
        void (*hear)(const struct activity *) =
            __atomic_load_n(&hears, __ATOMIC_ACQUIRE);
        if (hear)
            hear(&calls[i]);
    }
    mine.is_hearing = false;
}

void memsim_activity_name(enum activity_api api)
{
    mine.api = api;
}

void activity_graph(uint64_t exec)
{
    mine.graph = exec;
}

size_t memsim_activity_take(struct activity *activities, size_t most,
                            bool settle)
{
    core_lock(LOCK_RECORD);
    if (settle && memsim_activity_on)
        live_settle();
    size_t n = count < most ? count : most;
    for (size_t i = 0; i < n; i++)
        activities[i] = kept[(first + i) % ACTIVITIES_MAX];
    count -= n;
    first = count ? (first + n) % ACTIVITIES_MAX : 0;
    core_unlock(LOCK_RECORD);
    return n;
}

size_t memsim_activity_count(void)
{
    return __atomic_load_n(&count, __ATOMIC_RELAXED);
}

size_t memsim_activity_lost(void)
{
    core_lock(LOCK_RECORD);
    size_t n = lost;
    lost = 0;
    core_unlock(LOCK_RECORD);
    return n;
}

bool memsim_activity_push(uint32_t kind, uint64_t tag)
{
    if (kind >= ACTIVITY_TAG_KINDS)
        return false;
    uint32_t depth = mine.depths[kind]++;
    if (depth < DEPTH_MAX)
        mine.tags[kind][depth] = tag;
    return true;
}

bool memsim_activity_pop(uint32_t kind, uint64_t *tag)
{
    if (kind >= ACTIVITY_TAG_KINDS || !mine.depths[kind])
        return false;
    uint32_t depth = --mine.depths[kind];
    *tag = mine.tags[kind][depth < DEPTH_MAX ? depth : DEPTH_MAX - 1];
    return true;
}
