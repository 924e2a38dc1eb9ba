/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/cudnn.h"

void cudnn_call_record(const struct cudnn *cudnn, const struct cudnn_call *call)
{
    const uint64_t *v = call->values;
    const uint64_t fields[] = {call->name,    (uint64_t)cudnn->device,
                               cudnn->stream, call->workspace_bytes,
                               v[0],          v[1],
                               v[2],          v[3],
                               v[4],          v[5]};

    memsim_record_text(TRACE_LIBRARY_CALL, fields,
                       sizeof fields / sizeof *fields, call->detail.bytes,
                       call->detail.used);
}

cudnnStatus_t cudnn_pass_record(cudnnHandle_t handle, uint32_t name,
                                const uint64_t bytes[2],
                                const struct text *detail)
{
    const struct cudnn *cudnn = cudnn_get(handle);
    struct cudnn_call call = {
        .name = name, .values = {bytes[0], bytes[1]}, .detail = *detail};

    if (!cudnn)
        return CUDNN_STATUS_BAD_PARAM;
    cudnn_call_record(cudnn, &call);
    return CUDNN_STATUS_SUCCESS;
}
