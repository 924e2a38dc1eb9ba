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

bool memsim_activity_on;

/* Under LOCK_RECORD. A ring that begins anew where it was emptied, so that a
 * profiler that takes them often touches little memory. */
static struct activity *kept;
static size_t first, count, lost;
static size_t fresh; /* the last ones, on the simulation's clock */

static _Thread_local struct {
    uint64_t tags[ACTIVITY_TAG_KINDS][DEPTH_MAX];
    uint32_t depths[ACTIVITY_TAG_KINDS];
    enum activity_api api;
} mine;

uint64_t memsim_activity_calls(void)
{
    core_lock(LOCK_RECORD);
    uint64_t calls = live_calls();
    core_unlock(LOCK_RECORD);
    return calls;
}

static void keep(const struct activity *a)
{
    if (count == ACTIVITIES_MAX) {
        lost++;
        return;
    }
    kept[(first + count++) % ACTIVITIES_MAX] = *a;
    fresh++;
}

static void timed(uint64_t origin_ns)
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
        keep(&a);
    }
}

/* A call of this thread or work. */
static void put(struct activity *a)
{
    if (a->name_id && *record_name(a->name_id))
        a->name = record_name(a->name_id);
    if (a->what == ACTIVITY_CALL) {
        a->thread = (uint32_t)pthread_self();
        a->api = mine.api;
        mine.api = ACTIVITY_API_PLAIN;
        tags_put(a);
    }
    keep(a);
}

static void forked(void)
{
    memsim_activity_on = false;
    first = count = lost = fresh = 0;
}

void memsim_activity_listen(bool on)
{
    static const struct live_listener listener = {put, timed, forked};

    core_lock(LOCK_RECORD);
    if (on && !kept)
        kept = memsim_pages_reserve(0, ACTIVITIES_MAX * sizeof *kept);
    memsim_activity_on = on && kept;
    live_listen(memsim_activity_on ? &listener : NULL);
    core_unlock(LOCK_RECORD);
}

void memsim_activity_name(enum activity_api api)
{
    mine.api = api;
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
