/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/kept.h"

#include <stdatomic.h>
#include <string.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/ranges.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/host_heap.h"
#include "capture/core/run/host_use.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/look_pace.h"

#define KINDS   4096 /* a power of two */
#define BLOCKS  (UINT64_C(1) << 18)
#define WARM_UP 2  /* rounds that leave behind what all later ones use */
#define WATCHED 8  /* rounds, after each new height */
#define MOST    64 /* rounds in all */

static struct kind {
    uint64_t key; /* 0: free */
    uint32_t live, high;
    uint32_t until; /* it is watched before this round */
    uint32_t watched;
} kinds[KINDS];
static uint32_t kind_count;

static struct ranges blocks = {.places = BLOCKS};
static uint32_t rounds;
static _Atomic bool watching; /* any kind */
static struct trace_host_level told;
static struct look_pace pace; /* of looks at the heap */

/* TAG's place in `kinds`, or the free one where it would be. */
static uint32_t kind_find(const struct tag *tag)
{
    uint64_t key = UINT64_C(1) << 63 | (uint64_t)tag->operation << 32 |
                   tag->module;
    uint32_t place =
        (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (KINDS - 1);

    while (kinds[place].key && kinds[place].key != key)
        place = (place + 1) & (KINDS - 1);
    if (!kinds[place].key && kind_count < KINDS / 2) {
        kinds[place].key = key;
        kind_count++;
    }
    return place;
}

/* Whether anybody wants to know. */
static bool is_wanted(void)
{
    const struct session *s = memsim_session();

    return s && s->stacks == SESSION_STACKS_KEPT;
}

void kept_add(uint64_t address, uint64_t bytes, const struct tag *tag)
{
    if (!is_wanted())
        return;
    core_lock(LOCK_KEPT);
    uint32_t kind = kind_find(tag);
    if (kinds[kind].key &&
        ranges_add(&blocks, &(struct range){.address = address,
                                           .bytes = bytes,
                                           .kind = kind}))
        kinds[kind].live++;
    core_unlock(LOCK_KEPT);
}

void kept_remove(uint64_t address)
{
    struct range old;

    if (!is_wanted())
        return;
    core_lock(LOCK_KEPT);
    if (ranges_remove(&blocks, address, &old))
        kinds[old.kind].live--;
    core_unlock(LOCK_KEPT);
}

bool kept_wanted(void)
{
    struct tag tag;

    if (!atomic_load_explicit(&watching, memory_order_relaxed))
        return false;
    tag_now(&tag);
    core_lock(LOCK_KEPT);
    bool wanted = kinds[kind_find(&tag)].until > rounds;
    core_unlock(LOCK_KEPT);
    return wanted;
}

/* A round begins: was there never more of K? Returns whether K is watched. */
static bool kind_measure(struct kind *k)
{
    bool more = k->live > k->high;

    if (more)
        k->high = k->live;
    if (more && rounds > WARM_UP && k->watched < MOST)
        k->until = rounds + WATCHED;
    if (k->until <= rounds)
        return false;
    k->watched++;
    return true;
}

static void kinds_measure(void)
{
    bool any = false;

    rounds++;
    for (uint32_t i = 0, seen = 0; seen < kind_count; i++) {
        if (!kinds[i].key)
            continue;
        seen++;
        any |= kind_measure(&kinds[i]);
    }
    atomic_store_explicit(&watching, any, memory_order_relaxed);
}

/* The heap without the TENSORS in it. */
static uint64_t heap_look(uint64_t tensors)
{
    uint64_t start_ns = clock_host(CLOCK_MONOTONIC);
    uint64_t cpu_ns = clock_host(CLOCK_THREAD_CPUTIME_ID);
    uint64_t used = host_heap_look().used_bytes;
    uint64_t cost_ns = clock_host(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;

    core_lock(LOCK_KEPT);
    look_pace_looked(&pace, clock_host(CLOCK_MONOTONIC), cost_ns);
    core_unlock(LOCK_KEPT);
    record_skip(start_ns);
    return used > tensors ? used - tensors : 0;
}

static void host_record(bool heap)
{
    uint64_t tensors = host_use_level(SESSION_HOST_TENSORS);
    const struct trace_host_level now = {
        .tensor_bytes = host_use_round(),
        .pinned_bytes = host_use_level(SESSION_HOST_PINNED),
        .heap_bytes = heap ? heap_look(tensors) : 0,
    };

    core_lock(LOCK_KEPT);
    bool same = !memcmp(&now, &told, sizeof now);
    told = now;
    core_unlock(LOCK_KEPT);
    if (!same || now.heap_bytes) /* the same level, seen again, is news */
        RECORD(HOST_LEVEL, .tensor_bytes = now.tensor_bytes,
               .pinned_bytes = now.pinned_bytes, .heap_bytes = now.heap_bytes);
}

void kept_restart(enum kept_rule rule)
{
    static _Atomic bool done[KEPT_RULES];

    if (atomic_load_explicit(&done[rule], memory_order_relaxed))
        return;
    core_lock(LOCK_KEPT);
    atomic_store_explicit(&done[rule], true, memory_order_relaxed);
    pace = (struct look_pace){0};
    core_unlock(LOCK_KEPT);
}

void kept_round(void)
{
    uint64_t now_ns = clock_host(CLOCK_MONOTONIC);

    core_lock(LOCK_KEPT);
    kinds_measure();
    bool heap = look_pace_round(&pace, now_ns);
    core_unlock(LOCK_KEPT);
    host_record(heap);
}
