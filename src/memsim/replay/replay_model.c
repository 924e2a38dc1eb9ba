/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/replay_model.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"

/* Windows far apart, and from where recorded segments usually lie; each has
 * room for many times the largest GPU. The bases show in segment maps only:
 * the rules are the same everywhere. */
#define MALLOC_BASE  (UINT64_C(0x7e) << 40)
#define RESERVE_BASE (UINT64_C(0x60) << 40)
#define WINDOW_BYTES (UINT64_C(1) << 40)

static void update_limit(struct replay_model *m)
{
    uint64_t taken = m->other_bytes + m->mapped_bytes;

    vaspace_limit(&m->space,
                  taken < m->capacity_bytes ? m->capacity_bytes - taken : 0);
}

uint64_t replay_model_used(const struct replay_model *m)
{
    return m->other_bytes + m->mapped_bytes + m->space.used_bytes;
}

/* Within a step, too: pages that are mapped before the one that fails. */
static void note_used(struct replay_model *m)
{
    uint64_t used = replay_model_used(m);

    if (used > m->peak_used_bytes)
        m->peak_used_bytes = used;
}

void replay_model_give(struct replay_model *m, uint64_t address, uint64_t bytes)
{
    if (!m->follows)
        return;
    xgrow(&m->given, m->given_count, &m->given_capacity, sizeof *m->given);
    m->given[m->given_count++] = (struct replay_given){address, bytes};
}

void replay_model_asked(struct replay_model *m)
{
    if (m->given_first != m->given_count)
        m->departed = true;
    m->given_first = m->given_count = 0;
}

/* The recorded address of the segment of BYTES that is OURS; 0: none. */
static uint64_t follow_segment(struct replay_model *m, uint64_t ours,
                               uint64_t bytes)
{
    const struct replay_given *given = &m->given[m->given_first];

    if (m->given_first == m->given_count || given->bytes != bytes) {
        m->departed = true;
        return 0;
    }
    m->given_first++;
    map_put(&m->followed, given->address, (void *)(uintptr_t)ours);
    return given->address;
}

/* Our address of BYTES more; 0: no memory. */
static uint64_t space_take(struct replay_model *m, uint64_t bytes)
{
    uint64_t address = vaspace_alloc(&m->space, bytes);

    if (!address)
        m->refused_bytes = bytes;
    note_used(m);
    return address;
}

static uint64_t model_malloc(void *context, uint64_t bytes)
{
    struct replay_model *m = context;
    uint64_t ours = space_take(m, bytes);
    uint64_t recorded = 0;

    if (m->follows && ours)
        recorded = follow_segment(m, ours, bytes);
    else if (m->follows)
        m->departed = true;
    return recorded ? recorded : ours;
}

/* No more than there is: a reset may have been before. */
static void unmap_bytes(struct replay_model *m, uint64_t bytes)
{
    m->mapped_bytes -= bytes < m->mapped_bytes ? bytes : m->mapped_bytes;
    update_limit(m);
}

static void model_free(void *context, uint64_t address, uint64_t bytes)
{
    struct replay_model *m = context;
    void *ours = m->follows ? map_take(&m->followed, address) : NULL;

    if (ours)
        address = (uintptr_t)ours;
    /* What was there before the recording is not in the address space. */
    if (!vaspace_free(&m->space, address))
        unmap_bytes(m, bytes);
}

static uint64_t model_reserve(void *context, uint64_t bytes)
{
    struct replay_model *m = context;

    return vaspace_alloc(&m->reserved, bytes);
}

static void model_unreserve(void *context, uint64_t address, uint64_t bytes)
{
    struct replay_model *m = context;

    (void)bytes;
    vaspace_free(&m->reserved, address);
}

static bool model_map(void *context, uint64_t address, uint64_t bytes)
{
    struct replay_model *m = context;

    (void)address;
    if (replay_model_used(m) + bytes > m->capacity_bytes) {
        m->refused_bytes = bytes;
        return false;
    }
    m->mapped_bytes += bytes;
    update_limit(m);
    note_used(m);
    return true;
}

static void model_unmap(void *context, uint64_t address, uint64_t bytes)
{
    struct replay_model *m = context;

    (void)address;
    unmap_bytes(m, bytes);
}

static uint64_t model_free_bytes(void *context)
{
    const struct replay_model *m = context;
    uint64_t used = replay_model_used(m);

    return used < m->capacity_bytes ? m->capacity_bytes - used : 0;
}

struct alloc_driver replay_model_driver(struct replay_model *m)
{
    return (struct alloc_driver){
        .context = m,
        .malloc = model_malloc,
        .free = model_free,
        .reserve = model_reserve,
        .unreserve = model_unreserve,
        .map = model_map,
        .unmap = model_unmap,
        .free_bytes = model_free_bytes,
    };
}

int replay_model_init(struct replay_model *m,
                      const struct replay_config *config,
                      const struct snapshot *initial, unsigned device,
                      const char *name, struct err *err)
{
    *m = (struct replay_model){.capacity_bytes = config->total_bytes,
                               .other_bytes = config->other_bytes,
                               .first_bytes = config->other_bytes};
    for (size_t i = 0; initial && i < initial->segment_count; i++)
        if (initial->segments[i].device == device)
            m->mapped_bytes += initial->segments[i].bytes;
    if (vaspace_init(&m->space, MALLOC_BASE, WINDOW_BYTES, config->addresses,
                     NULL) ||
        vaspace_init(&m->reserved, RESERVE_BASE, 8 * WINDOW_BYTES,
                     VASPACE_CHUNKS, NULL)) {
        replay_model_fini(m);
        return err_set(err, "%s: no memory for device %u", name, device);
    }
    update_limit(m);
    note_used(m);
    return 0;
}

void replay_model_fini(struct replay_model *m)
{
    vaspace_fini(&m->space);
    vaspace_fini(&m->reserved);
    map_fini(&m->others);
    map_fini(&m->followed);
    free(m->given);
}

bool replay_model_other_alloc(struct replay_model *m, uint64_t address,
                              uint64_t bytes)
{
    if (!address) {
        if (replay_model_used(m) + bytes > m->capacity_bytes) {
            m->refused_bytes = bytes;
            return false;
        }
        m->other_bytes += bytes;
        update_limit(m);
        note_used(m);
        return true;
    }
    uint64_t ours = space_take(m, bytes);
    if (ours)
        map_put(&m->others, address, (void *)(uintptr_t)ours);
    return ours != 0;
}

void replay_model_other_free(struct replay_model *m, uint64_t address)
{
    void *ours = map_take(&m->others, address);

    if (ours)
        vaspace_free(&m->space, (uintptr_t)ours);
}

void replay_model_reset(struct replay_model *m)
{
    vaspace_reset(&m->space);
    map_fini(&m->others);
    map_fini(&m->followed);
    m->mapped_bytes = 0;
    m->other_bytes = m->first_bytes;
    update_limit(m);
}
