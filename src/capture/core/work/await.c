/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/await.h"

#include <string.h>

#include "capture/core/base/lock.h"
#include "capture/core/memory/values.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/meeting.h"
#include "capture/core/torch/python_line.h"

#define SLEEP_MS        100
#define LINE_BYTES      96

_Atomic uint64_t await_live;

static struct entry {
    const struct await_kind *kind;
    uint64_t address, bytes;
    uint64_t number; /* tells the works of one entry apart */
    bool unwanted, over;
    _Alignas(16) unsigned char data[AWAIT_BYTES];
} entries[AWAIT_MAX];

static uint64_t numbers;

/* --- masks ---------------------------------------------------------------- */

/* With LOCK_AWAIT held. A bit may be another work's by now. */
static uint64_t bits_now(const struct await_mask *mask)
{
    uint64_t found = 0;

    for (uint64_t bits = mask->bits & await_live; bits; bits &= bits - 1)
        if (entries[__builtin_ctzll(bits)].number <= mask->at)
            found |= bits & -bits;
    return found;
}

uint64_t await_bits(const struct await_mask *mask)
{
    core_lock(LOCK_AWAIT);
    uint64_t bits = bits_now(mask);
    core_unlock(LOCK_AWAIT);
    return bits;
}

void await_add(struct await_mask *mask, uint64_t bits)
{
    core_lock(LOCK_AWAIT);
    mask->bits = bits_now(mask) | bits;
    mask->at = numbers;
    core_unlock(LOCK_AWAIT);
}

/* --- the works ------------------------------------------------------------ */

/* With LOCK_AWAIT held. */
static bool entry_try(int i)
{
    struct entry *e = &entries[i];

    if (!e->kind->complete(e->data, e->unwanted, e->over))
        return false;
    atomic_fetch_and(&await_live, ~(UINT64_C(1) << i));
    return true;
}

static void each_try(uint64_t mask)
{
    core_lock(LOCK_AWAIT);
    for (mask &= await_live; mask; mask &= mask - 1)
        entry_try(__builtin_ctzll(mask));
    core_unlock(LOCK_AWAIT);
}

void memsim_await_poll(void)
{
    if (await_any())
        each_try(UINT64_MAX);
}

bool await_is_done(uint64_t mask)
{
    if (mask & await_live)
        each_try(mask);
    return !(mask & await_live);
}

static uint64_t now_ms(void)
{
    return clock_host(CLOCK_MONOTONIC) / 1000000;
}

/* Takes the first of MASK that is under way. False: there is none. */
static bool entry_take(uint64_t mask, struct entry *copy, int *index)
{
    core_lock(LOCK_AWAIT);
    mask &= await_live;
    if (mask) {
        *index = __builtin_ctzll(mask);
        *copy = entries[*index];
    }
    core_unlock(LOCK_AWAIT);
    return mask;
}

/* Waits for the work in COPY, of entry INDEX. */
static void entry_wait(struct entry *copy, int index)
{
    uint64_t start = now_ms(), bit = UINT64_C(1) << index;
    char place[LINE_BYTES] = "";

    for (;;) {
        core_lock(LOCK_AWAIT);
        bool done = !(await_live & bit) ||
                    entries[index].number != copy->number || entry_try(index);
        core_unlock(LOCK_AWAIT);
        if (done)
            return;
        copy->kind->sleep(copy->data, SLEEP_MS);
        uint64_t waited = now_ms() - start;
        if (waited < SLEEP_MS)
            continue;
        if (!*place)
            python_line(place, sizeof place);
        bool over = copy->kind->give_up(copy->data, waited, place);
        core_lock(LOCK_AWAIT);
        if (over && entries[index].number == copy->number)
            entries[index].over = true;
        core_unlock(LOCK_AWAIT);
    }
}

void await_reach(uint64_t mask)
{
    struct entry copy;
    int index;

    if (!(mask & await_live) || core_locks_held)
        return;
    uint64_t start_ns = clock_waits_begin();
    while (entry_take(mask, &copy, &index))
        entry_wait(&copy, index);
    meeting_has();
    clock_waits_end(start_ns);
}

static bool entry_overlaps(const struct entry *e, uint64_t address,
                           uint64_t bytes)
{
    return address < e->address + e->bytes && e->address < address + bytes;
}

static uint64_t mask_at(uint64_t address, uint64_t bytes)
{
    uint64_t found = 0;

    for (uint64_t mask = await_live; mask; mask &= mask - 1) {
        int i = __builtin_ctzll(mask);

        if (entry_overlaps(&entries[i], address, bytes))
            found |= UINT64_C(1) << i;
    }
    return found;
}

void memsim_await_memory(uint64_t address, uint64_t bytes)
{
    if (await_any())
        await_reach(mask_at(address, bytes));
}

/* BYTES at ADDRESS have another use from now on. */
static void memory_forgotten(uint64_t address, uint64_t bytes)
{
    if (!await_any())
        return;
    for (uint64_t mask = mask_at(address, bytes); mask; mask &= mask - 1)
        entries[__builtin_ctzll(mask)].unwanted = true;
}

/* A free entry, with LOCK_AWAIT held; -1: none. */
static int entry_free(void)
{
    uint64_t live = await_live;

    return ~live ? __builtin_ctzll(~live) : -1;
}

uint64_t memsim_await(const struct await_kind *kind, const void *data,
                      size_t count, uint64_t address, uint64_t bytes,
                      bool later)
{
    int i;

    values_forgotten = memory_forgotten;
    for (;;) {
        core_lock(LOCK_AWAIT);
        i = entry_free();
        if (i >= 0)
            break;
        core_unlock(LOCK_AWAIT);
        await_reach(UINT64_C(1)); /* all are in use: the first one ends */
    }
    entries[i] = (struct entry){.kind = kind,
                                .address = address,
                                .bytes = bytes,
                                .number = ++numbers};
    memcpy(entries[i].data, data, count);
    bool done = !later && kind->complete(entries[i].data, false, false);
    if (!done)
        atomic_fetch_or(&await_live, UINT64_C(1) << i);
    core_unlock(LOCK_AWAIT);
    return done ? 0 : UINT64_C(1) << i;
}
