/* SPDX-License-Identifier: Apache-2.0
 * Records in the trace the ranges and marks that a program sets with NVTX. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_NVTX_H
#define MEMSIM_CAPTURE_CORE_TORCH_NVTX_H

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "capture/core/base/core.h"

/* What NVTX calls a range's level: how many of this thread's are open. TEXT may
 * be NULL; DOMAIN 0 is the default one. */
CORE_API int memsim_range_push(uint64_t domain, const char *text);
CORE_API int memsim_range_pop(uint64_t domain);
CORE_API void memsim_mark(uint64_t domain, const char *text);

/* What an event says, where it says it in bytes; else NULL. */
static inline const char *nvtx_event_text(const nvtxEventAttributes_t *event)
{
    if (!event)
        return NULL;
    switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
        return event->message.ascii;
    case NVTX_MESSAGE_TYPE_REGISTERED:
        return (const char *)event->message.registered;
    default: /* none, or wide characters */
        return NULL;
    }
}

/* Stands for a text in later calls; the same one for the same text. */
CORE_API const char *memsim_range_string(const char *text);

#endif
