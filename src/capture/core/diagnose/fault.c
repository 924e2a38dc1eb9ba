/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/diagnose/fault.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/memory/watch.h"
#include "capture/core/memory/device.h"
#include "capture/core/run/process.h"
#include "capture/core/torch/tag.h"

static bool blocking; /* launches wait for their kernel */

/* What the environment says when a context is made counts. */
static void blocking_read(int device)
{
    const char *text = getenv("CUDA_LAUNCH_BLOCKING");

    (void)device;
    blocking = text && !strcmp(text, "1");
}

void fault_raise(int device, int code, const char *text)
{
    char place[TAG_TEXT_BYTES];

    if (!device_fail(device, code))
        return;
    tag_text(place, sizeof place);
    memsim_note("%s%s: a GPU stops here (%s), and every later CUDA call fails",
                text, place,
                code == CORE_ASSERT ? "device-side assert triggered"
                                    : "an illegal memory access");
}

void fault_suspect(const char *text)
{
    char place[TAG_TEXT_BYTES];

    tag_text(place, sizeof place);
    memsim_note("%s%s, unless a kernel that memsim cannot follow changed it",
                text, place);
}

int fault_of_launch(int device)
{
    return blocking ? device_fault(device) : CORE_OK;
}

bool fault_is_blocking(void)
{
    return blocking;
}

static struct memory_watch watch = {.context_made = blocking_read};

__attribute__((constructor)) static void fault_start(void)
{
    memory_watch_add(&watch);
}
