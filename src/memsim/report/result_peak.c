/* SPDX-License-Identifier: Apache-2.0
 * What was in memory at a card's peak, as a part of the result. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/report/result.h"

#define PEAK_THINGS 64 /* listed one by one */

static void thing_add(struct result_device *device, uint64_t bytes,
                 const char *label)
{
    if (!bytes)
        return;
    struct peak_thing *t = &device->things[device->thing_count++];
    *t = (struct peak_thing){.bytes = bytes};
    snprintf(t->label, sizeof t->label, "%s", label);
}

/* What is beyond the largest ones becomes one. */
static void blocks_add(struct result_device *device,
                        const struct peak_card *card)
{
    size_t shown =
        card->thing_count < PEAK_THINGS ? card->thing_count : PEAK_THINGS;
    uint64_t rest = 0;

    for (size_t i = 0; i < shown; i++)
        device->things[i] = card->things[i];
    device->thing_count = shown;
    for (size_t i = shown; i < card->thing_count; i++)
        rest += card->things[i].bytes;
    thing_add(device, rest, "everything smaller");
}

/* The trace and the session tell of the same refusals in the same order. */
static void ooms_name_modules(struct result_device *device)
{
    const struct attribution *a = device->attribution;
    size_t at = 0;

    for (size_t i = 0; a && i < device->oom_count; i++)
        if (device->ooms[i].torch && at < a->oom_count)
            device->ooms[i].module = a->oom_modules[at++];
}

void result_device_take(struct result_device *device, struct peak_card *card)
{
    attribution_destroy(device->attribution);
    device->attribution = card->attribution;
    card->attribution = NULL;
    ooms_name_modules(device);
    free(device->things);
    device->things = xcalloc(PEAK_THINGS + 6, sizeof *device->things);
    blocks_add(device, card);
    if (card->torch) {
        thing_add(device,
             card->reserved_bytes > card->allocated_bytes
                 ? card->reserved_bytes - card->allocated_bytes
                 : 0,
             "cached by PyTorch, not in use");
        thing_add(device, card->outside_bytes, "cudaMalloc outside PyTorch");
    }
    thing_add(device, device->context_bytes, "CUDA context");
    thing_add(device, device->libraries_bytes, "CUDA libraries");
    thing_add(device, device->others_bytes, "other processes on the GPU");
    qsort(device->things, device->thing_count, sizeof *device->things,
          thing_compare);
}
