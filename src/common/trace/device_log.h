/* SPDX-License-Identifier: Apache-2.0
 * The file beside a real run's trace with what CUPTI said of its GPU's work, in
 * no order: rows, each followed by a text, which is padded to whole words. */
#ifndef MEMSIM_COMMON_TRACE_DEVICE_LOG_H
#define MEMSIM_COMMON_TRACE_DEVICE_LOG_H

#include <stdint.h>

#define DEVICE_LOG_END ".device" /* behind the trace's name */

enum device_log_kind {
    DEVICE_LOG_KERNEL = 1, /* text: its mangled name */
    DEVICE_LOG_COPY,
    DEVICE_LOG_SET,
    DEVICE_LOG_CALL, /* CUPTI's CORRELATION is a part of the call NUMBER */
    DEVICE_LOG_LOST, /* NUMBER records were lost */
};

struct device_log_row {
    uint32_t kind, text_bytes; /* without padding */
    uint64_t correlation;      /* CUPTI's number of the call */
    uint64_t number;           /* of a CALL: that of the trace's record */
    uint64_t start_ns, end_ns; /* on the clock of the trace */
    uint64_t bytes;            /* of a copy or set */
    uint32_t device, stream;   /* CUPTI's number of the stream */
    uint32_t grid[3], block[3], shared_bytes;
    uint32_t copy_kind; /* CUpti_ActivityMemcpyKind */
};

static inline uint32_t device_log_padded(uint32_t text_bytes)
{
    return (text_bytes + 7) & ~UINT32_C(7);
}

#endif
