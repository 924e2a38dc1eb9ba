/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/library_call.h"

#include <string.h>

#include "capture/core/work/kernel.h"
#include "capture/core/run/record.h"
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
    RECORD(LIBRARY_CALL, call->name, (uint64_t)device, call->stream,
           call->workspace_bytes, v[0], v[1], v[2], v[3], v[4], v[5]);
    return CORE_OK;
}

void memsim_call_result(void *result, uint64_t bytes)
{
    if (memsim_values_is_device((uint64_t)result))
        memsim_values_forget((uint64_t)result, bytes);
    else if (result)
        memset(result, 0, bytes);
}
