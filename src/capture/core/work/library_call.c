/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/library_call.h"

#include <stdlib.h>
#include <string.h>

#include "capture/core/work/kernel.h"
#include "capture/core/run/record.h"
#include "capture/core/work/submit.h"
#include "capture/core/work/stream.h"
#include "capture/core/work/stream_capture.h"
#include "capture/core/memory/values.h"

int memsim_call(const struct call *call)
{
    const uint64_t *v = call->values;
    int device;
    int rc =
        memsim_stream_given(call->stream, &device, record_name(call->name));

    if (rc)
        return rc;
    memsim_kernel_count(device);
    SUBMIT(LIBRARY_CALL, .name = call->name, .device = (uint64_t)device,
           .stream = call->stream, .workspace_bytes = call->workspace_bytes,
           .a = v[0], .b = v[1], .c = v[2], .d = v[3], .e = v[4], .f = v[5]);
    return CORE_OK;
}

void memsim_call_size(int device, uint64_t bytes, uint64_t least, uint64_t most)
{
    if (bytes && least < most)
        RECORD(SIZE_RANGE, .device = (uint64_t)device, .bytes = bytes,
               .least_bytes = least, .most_bytes = most);
}

/* Before main(), where a program may change its environment. */
static const char *workspaces;

__attribute__((constructor)) static void workspaces_find(void)
{
    workspaces = getenv("MEMSIM_WORKSPACES");
}

bool memsim_workspaces_learnt(void)
{
    return workspaces != NULL;
}

uint64_t memsim_call_workspace(uint64_t key, uint64_t bytes)
{
    char *end = (char *)workspaces;
    uint64_t by_size = bytes;

    while (end && *end) {
        bool is_key = *end == '#';
        uint64_t from = strtoull(end + is_key, &end, is_key ? 16 : 10);
        uint64_t to = *end == '=' ? strtoull(end + 1, &end, 10) : from;

        if (is_key && from == key)
            return to;
        if (!is_key && from == bytes)
            by_size = to;
        end = strchr(end, ',') ? strchr(end, ',') + 1 : NULL;
    }
    return by_size;
}

#define ROWS_MAX 4096 /* above, what lies between rows is not known either */

static void forget_values(uint64_t stream, uint64_t address, uint64_t bytes)
{
    const uint64_t step[STEP_WORDS] = {address, bytes};

    if (!memsim_capture_step(stream, STEP_FORGET, step))
        memsim_values_forget(address, bytes);
}

void memsim_call_writes(uint64_t stream, uint64_t address, uint64_t bytes,
                        uint64_t rows, uint64_t step)
{
    if (!rows || !bytes || !memsim_values_is_device(address))
        return;
    if (rows == 1 || step <= bytes || rows > ROWS_MAX) {
        forget_values(stream, address, (rows - 1) * step + bytes);
        return;
    }
    for (uint64_t i = 0; i < rows; i++)
        forget_values(stream, address + i * step, bytes);
}

void memsim_call_result(void *result, uint64_t bytes)
{
    if (memsim_values_is_device((uint64_t)result))
        memsim_values_forget((uint64_t)result, bytes);
    else if (result)
        memset(result, 0, bytes);
}
