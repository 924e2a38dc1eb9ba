/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/library_call.h"

#include <string.h>

#include "capture/core/work/kernel.h"
#include "capture/core/run/record.h"
#include "capture/core/work/submit.h"
#include "capture/core/work/stream.h"
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

void memsim_call_result(void *result, uint64_t bytes)
{
    if (memsim_values_is_device((uint64_t)result))
        memsim_values_forget((uint64_t)result, bytes);
    else if (result)
        memset(result, 0, bytes);
}
