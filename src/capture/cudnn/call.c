/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/submit.h"
#include "capture/cudnn/cudnn.h"

void cudnn_call_record(const struct cudnn *cudnn, const struct cudnn_call *call)
{
    const uint64_t *v = call->values;

    SUBMIT_TEXT(LIBRARY_CALL, call->detail.bytes, call->detail.used,
                .name = call->name, .device = (uint64_t)cudnn->device,
                .stream = cudnn->stream,
                .workspace_bytes = call->workspace_bytes, .a = v[0], .b = v[1],
                .c = v[2], .d = v[3], .e = v[4], .f = v[5]);
}
