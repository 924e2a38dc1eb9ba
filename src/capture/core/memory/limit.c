/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/limit.h"

#include <stdatomic.h>

#include "capture/core/memory/device.h"
#include "capture/core/run/process.h"
#include "common/trace/session.h"

/* cudaLimit: the stack, printf's buffer, the heap of malloc(), two of the
 * device's own runtime, two of the cache. MOST: what is more is
 * refused. */
static const struct limit {
    uint64_t first, most;
    const char *memory; /* what takes more of the GPU's, with a kernel of it */
} limits[] = {
    {1024, UINT64_MAX, "stacks"},
    {7 << 20, UINT64_MAX, "printf's buffer"},
    {8 << 20, UINT64_MAX, "the heap of malloc"},
    {2, UINT64_MAX, NULL},
    {2048, UINT64_MAX, NULL},
    {64, 128, NULL},
    {0, UINT64_MAX, NULL},
};

#define LIMITS (sizeof limits / sizeof *limits)

/* One more than what was set; 0: nothing was. */
static _Atomic uint64_t set[SESSION_DEVICES][LIMITS];

int memsim_limit_get(unsigned limit, uint64_t *value)
{
    if (limit >= LIMITS)
        return CORE_UNSUPPORTED_LIMIT;
    uint64_t now = atomic_load(&set[memsim_device_current()][limit]);
    *value = now ? now - 1 : limits[limit].first;
    return CORE_OK;
}

int memsim_limit_set(unsigned limit, uint64_t value)
{
    if (limit >= LIMITS)
        return CORE_UNSUPPORTED_LIMIT;
    if (value > limits[limit].most)
        return CORE_INVALID_VALUE; /* an H200 refuses it, too */
    if (limits[limit].memory && value > limits[limit].first)
        memsim_note("the program raises a limit (cudaDeviceSetLimit): what %s "
                    "takes on a GPU then is not counted",
                    limits[limit].memory);
    atomic_store(&set[memsim_device_current()][limit], value + 1);
    return CORE_OK;
}

void limit_reset(int device)
{
    for (size_t i = 0; i < LIMITS; i++)
        atomic_store(&set[device][i], 0);
}
