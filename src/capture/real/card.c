/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/real/card.h"

#include <cuda.h>
#include <stdatomic.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/memory/blocks.h"
#include "capture/core/memory/device.h"
#include "capture/core/memory/values.h"
#include "capture/core/run/process.h"
#include "capture/real/activity.h"
#include "capture/real/real.h"
#include "capture/real/usage.h"
#include "common/trace/session.h"

#define SLOTS (1u << 20) /* of allocations at a time, twice as many as fit */
#define GONE  1          /* an address that was taken back */

/* A window of addresses, of PyTorch's blocks too: the driver gives a device's
 * from one region. */
#define WINDOW_BYTES (UINT64_C(1) << 40)

/* --- allocations ---------------------------------------------------------- */

static struct given {
    uint64_t address, bytes; /* 0: none was here */
    uint32_t device, how;
} * table;

static uint32_t slot_of(uint64_t address)
{
    return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 44) &
           (SLOTS - 1);
}

/* Under LOCK_DEVICE. */
static struct given *given_find(uint64_t address)
{
    uint32_t i = slot_of(address);

    for (uint32_t n = 0; table && n < SLOTS && table[i].address; n++) {
        if (table[i].address == address)
            return &table[i];
        i = (i + 1) & (SLOTS - 1);
    }
    return NULL;
}

static void given_add(uint64_t address, uint64_t bytes, int device,
                      enum trace_how how)
{
    core_lock(LOCK_DEVICE);
    if (!table)
        table = memsim_pages_reserve(0, SLOTS * sizeof *table);
    uint32_t i = slot_of(address), n = 0;
    while (table && n < SLOTS && table[i].address > GONE) {
        i = (i + 1) & (SLOTS - 1);
        n++;
    }
    if (table && n < SLOTS)
        table[i] = (struct given){address, bytes, (uint32_t)device, how};
    core_unlock(LOCK_DEVICE);
}

/* --- contexts ------------------------------------------------------------- */

static struct card {
    uint64_t context_bytes, libraries_bytes, others_bytes;
    uint64_t unseen_bytes; /* of the context: NVML does not count them */
    session_u64 given_bytes; /* to the program, now */
    bool has_window;
} cards[SESSION_DEVICES];

/* Of all processes; 0: not known. */
static uint64_t used_bytes(void)
{
    size_t available = 0, total = 0;

    if (REAL_FUNCTION(cuMemGetInfo)(&available, &total))
        return 0;
    return total - available;
}

static void context_open(int device)
{
    struct card *card = &cards[device];
    uint64_t used = used_bytes();
    const struct session *session = memsim_session();
    int physical = memsim_device_physical(device);
    uint64_t others = session->devices[physical].others_bytes, own;

    card->others_bytes = others < used ? others : 0;
    card->context_bytes = used - card->others_bytes;
    if (usage_own_bytes(device, &own))
        card->unseen_bytes = card->context_bytes - own;
    device_real_open(device, card->context_bytes);
    activity_begin();
}

int card_current(void)
{
    CUdevice device;

    if (REAL_FUNCTION(cuCtxGetDevice)(&device) || device < 0 ||
        device >= memsim_device_count())
        return -1;
    if (!memsim_device_is_open(device))
        context_open(device);
    return device;
}

void card_library(int device, const char *who, uint64_t bytes)
{
    cards[device].libraries_bytes += bytes;
    device_real_library(device, who, bytes);
}

/* How much of MORE, which has gone since KNOWN was used, is this process's: all
 * of it, where NVML does not say. */
static uint64_t own_part(int device, uint64_t more, uint64_t known)
{
    uint64_t mine = known - cards[device].others_bytes, own;

    if (!usage_own_bytes(device, &own))
        return more;
    own += cards[device].unseen_bytes;
    if (own <= mine)
        return 0;
    return own - mine < more ? own - mine : more;
}

void card_look(int device)
{
    struct card *card = &cards[device];
    uint64_t known = card->others_bytes + card->context_bytes +
                     card->libraries_bytes + atomic_load(&card->given_bytes);
    uint64_t used = used_bytes();

    usage_look(device);
    if (used <= known)
        return;
    uint64_t more = used - known, taken = own_part(device, more, known);
    card->others_bytes += more - taken;
    if (taken)
        card_library(device, "libraries and kernels, as cuMemGetInfo has it",
                     taken);
}

/* --- what the program takes ----------------------------------------------- */

static uint64_t cap_bytes(void)
{
    return memsim_session() ? memsim_session()->cap_bytes : 0;
}

bool card_is_full(int device, uint64_t bytes)
{
    uint64_t cap = cap_bytes();
    const struct card *card = &cards[device];

    return cap && card->context_bytes + card->libraries_bytes +
                          atomic_load(&card->given_bytes) + bytes >
                      cap;
}

static void window_open(int device, uint64_t address)
{
    if (cards[device].has_window)
        return;
    cards[device].has_window = true;
    blocks_place(device, address & ~(WINDOW_BYTES - 1), WINDOW_BYTES);
    values_place_real(device, address & ~(WINDOW_BYTES - 1), WINDOW_BYTES);
}

void card_give(int device, uint64_t address, uint64_t bytes, enum trace_how how,
               bool retries)
{
    if (device < 0 || !address)
        return;
    window_open(device, address);
    given_add(address, bytes, device, how);
    atomic_fetch_add(&cards[device].given_bytes, bytes);
    device_real_give(device, address, bytes, how, retries);
    card_look(device);
}

void card_refuse(int device, uint64_t bytes, enum trace_how how, bool retries)
{
    if (device >= 0)
        device_real_refuse(device, bytes, how, retries);
}

void card_look_before(uint64_t address)
{
    core_lock(LOCK_DEVICE);
    const struct given *found = given_find(address);
    int device = found ? (int)found->device : -1;
    core_unlock(LOCK_DEVICE);
    if (device >= 0 && card_current() == device)
        card_look(device);
}

bool card_take_back(uint64_t address)
{
    core_lock(LOCK_DEVICE);
    struct given *found = given_find(address);
    struct given given = found ? *found : (struct given){0};
    if (found)
        found->address = GONE;
    core_unlock(LOCK_DEVICE);
    if (!found)
        return false;
    atomic_fetch_sub(&cards[given.device].given_bytes, given.bytes);
    device_real_take_back((int)given.device, address, given.bytes,
                          (enum trace_how)given.how);
    return true;
}

void card_show(int device, size_t *free_bytes, size_t *total_bytes)
{
    uint64_t cap = cap_bytes();

    if (!cap || device < 0 || *total_bytes <= cap)
        return;
    uint64_t used = *total_bytes - *free_bytes;
    *total_bytes = cap;
    *free_bytes = used < cap ? cap - used : 0;
}
