/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/ipc.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/memory/owner.h"
#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/run/process.h"
#include "capture/core/work/stream.h"

#define OPEN_MAX    4096
#define MEMORY_MARK UINT32_C(0x4d50494d) /* "MIPM" */
#define EVENT_MARK  UINT32_C(0x4550494d) /* "MIPE" */

struct passport {
    uint32_t mark;
    uint32_t pid;
    uint64_t session_start; /* tells runs apart */
    uint64_t address, bytes;
    uint32_t card;
    uint32_t flags; /* of an event */
};
_Static_assert(sizeof(struct passport) <= IPC_HANDLE_BYTES, "does not fit");

static struct opened {
    struct passport of;
    uint64_t address; /* here */
    uint32_t references;
} opened[OPEN_MAX];
static uint32_t opened_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct passport passport_new(uint32_t mark, int device)
{
    return (struct passport){
        .mark = mark,
        .pid = (uint32_t)getpid(),
        .session_start = memsim_session()->start_ns,
        .card = (uint32_t)memsim_device_physical(device),
    };
}

static void passport_write(const struct passport *passport,
                           unsigned char handle[IPC_HANDLE_BYTES])
{
    memset(handle, 0, IPC_HANDLE_BYTES);
    memcpy(handle, passport, sizeof *passport);
}

/* Reads one of another process of this run; *DEVICE is the GPU here. */
static int passport_read(const unsigned char handle[IPC_HANDLE_BYTES],
                         uint32_t mark, struct passport *passport, int *device)
{
    memcpy(passport, handle, sizeof *passport);
    if (!memsim_session() || passport->mark != mark ||
        passport->session_start != memsim_session()->start_ns)
        return CORE_INVALID_VALUE;
    if (passport->pid == (uint32_t)getpid())
        return CORE_INVALID_CONTEXT;
    for (int i = 0; i < memsim_device_count(); i++)
        if (memsim_device_physical(i) == (int)passport->card) {
            *device = i;
            return memsim_device_open(i);
        }
    return CORE_INVALID_DEVICE;
}

int memsim_ipc_export(uint64_t address, unsigned char handle[IPC_HANDLE_BYTES])
{
    uint64_t start, bytes;
    int device;

    if (!device_owns(address, &device, &start, &bytes))
        return CORE_INVALID_VALUE;
    struct passport passport = passport_new(MEMORY_MARK, device);
    passport.address = start;
    passport.bytes = bytes;
    passport_write(&passport, handle);
    return CORE_OK;
}

static struct opened *opened_find(const struct passport *passport)
{
    for (uint32_t i = 0; i < opened_count; i++)
        if (opened[i].references &&
            !memcmp(&opened[i].of, passport, sizeof *passport))
            return &opened[i];
    return NULL;
}

static int opened_add(const struct passport *passport, int device,
                      struct opened **place)
{
    uint32_t i = 0;

    while (i < opened_count && opened[i].references)
        i++;
    if (i == OPEN_MAX)
        return CORE_OUT_OF_MEMORY;
    uint64_t address = memsim_device_import(device, passport->bytes);
    if (!address)
        return CORE_OUT_OF_MEMORY;
    if (i == opened_count)
        opened_count++;
    opened[i] = (struct opened){.of = *passport, .address = address};
    *place = &opened[i];
    return CORE_OK;
}

int memsim_ipc_open(const unsigned char handle[IPC_HANDLE_BYTES],
                    uint64_t *address)
{
    struct passport passport;
    int device;
    int rc = passport_read(handle, MEMORY_MARK, &passport, &device);

    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    struct opened *place = opened_find(&passport);
    if (!place)
        rc = opened_add(&passport, device, &place);
    if (!rc) {
        place->references++;
        *address = place->address;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static struct opened *opened_at(uint64_t address)
{
    for (uint32_t i = 0; i < opened_count; i++)
        if (opened[i].references && opened[i].address == address)
            return &opened[i];
    return NULL;
}

int memsim_ipc_close(uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct opened *place = opened_at(address);
    if (place && !--place->references)
        memsim_device_forget_import(address);
    pthread_mutex_unlock(&lock);
    return place ? CORE_OK : CORE_INVALID_VALUE;
}

void ipc_reset(int device)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < opened_count; i++)
        if (opened[i].references &&
            (int)opened[i].of.card == memsim_device_physical(device)) {
            opened[i].references = 0;
            memsim_device_forget_import(opened[i].address);
        }
    pthread_mutex_unlock(&lock);
}

static bool is_foreign(uint64_t address)
{
    pthread_mutex_lock(&lock);
    bool foreign = opened_at(address);
    pthread_mutex_unlock(&lock);
    return foreign;
}

int memsim_ipc_export_event(uint64_t event,
                            unsigned char handle[IPC_HANDLE_BYTES])
{
    const struct event *found = memsim_handle_get(HANDLE_EVENT, (void *)event);

    if (!found || !(found->flags & EVENT_INTERPROCESS))
        return CORE_INVALID_HANDLE;
    struct passport passport = passport_new(EVENT_MARK, found->device);
    passport.address = event;
    passport.flags = found->flags;
    passport_write(&passport, handle);
    return CORE_OK;
}

/* Its owner's records are done by the time that anybody asks for them here. */
int memsim_ipc_open_event(const unsigned char handle[IPC_HANDLE_BYTES],
                          uint64_t *event)
{
    struct passport passport;
    int device, current = memsim_device_current();
    int rc = passport_read(handle, EVENT_MARK, &passport, &device);

    if (rc)
        return rc;
    memsim_device_select(device);
    rc = memsim_event_create(passport.flags, event);
    memsim_device_select(current);
    return rc;
}

__attribute__((constructor)) static void ipc_start(void)
{
    owner_set(OWNER_FOREIGN, is_foreign);
}
