/* SPDX-License-Identifier: Apache-2.0
 * NVTX 2, which was a library: PyTorch up to 2.5 links it. */
#include "capture/core/torch/nvtx.h"
#include "capture/core/run/record.h"

void nvtxMarkEx(const nvtxEventAttributes_t *event)
{
    memsim_mark(0, nvtx_event_text(event));
}

void nvtxMarkA(const char *text)
{
    memsim_mark(0, text);
}

int nvtxRangePushEx(const nvtxEventAttributes_t *event)
{
    return memsim_range_push(0, nvtx_event_text(event));
}

int nvtxRangePushA(const char *text)
{
    return memsim_range_push(0, text);
}

int nvtxRangePop(void)
{
    return memsim_range_pop(0);
}

nvtxDomainHandle_t nvtxDomainCreateA(const char *name)
{
    return (nvtxDomainHandle_t)(uint64_t)memsim_name(name);
}

nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain,
                                             const char *text)
{
    (void)domain;
    return (nvtxStringHandle_t)memsim_range_string(text);
}

void nvtxDomainMarkEx(nvtxDomainHandle_t domain,
                      const nvtxEventAttributes_t *event)
{
    memsim_mark((uint64_t)domain, nvtx_event_text(event));
}

int nvtxDomainRangePushEx(nvtxDomainHandle_t domain,
                          const nvtxEventAttributes_t *event)
{
    return memsim_range_push((uint64_t)domain, nvtx_event_text(event));
}

int nvtxDomainRangePop(nvtxDomainHandle_t domain)
{
    return memsim_range_pop((uint64_t)domain);
}
