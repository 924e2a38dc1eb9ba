/* SPDX-License-Identifier: Apache-2.0
 * The records of what a program gives a GPU to do, as a simulated run has them.
 * Each is written after its call, for which real.h's CALL stands. */
#ifndef MEMSIM_CAPTURE_REAL_TAP_H
#define MEMSIM_CAPTURE_REAL_TAP_H

#include <stddef.h>

#include "capture/core/base/launch.h"
#include "capture/core/memory/host.h"
#include "capture/core/work/gemm.h"
#include "capture/real/real.h"
#include "common/trace/trace.h"

/* TAP(call, EVENT_CREATE, .event = e): a record of the current device; none
 * where the thread has no context. */
#define TAP(call, kind, ...)                                                  \
    do {                                                                       \
        int device_ = tap_begin(call, 0);                                     \
        if (device_ >= 0)                                                      \
            RECORD(kind, .device = (uint64_t)device_, __VA_ARGS__);            \
    } while (0)

/* The same for work that is given to a STREAM, which may be captured. */
#define TAP_ON(call, on, kind, ...)                                           \
    do {                                                                       \
        int device_ = tap_begin(call, (uint64_t)(on));                        \
        if (device_ >= 0)                                                      \
            RECORD(kind, .device = (uint64_t)device_,                          \
                   .stream = (uint64_t)(on), __VA_ARGS__);                     \
    } while (0)

/* Says of which call the next record is. The current device, or -1. */
int tap_begin(const struct real_call *call, uint64_t stream);

/* After the record of a kernel, or of a library's call, that was given to
 * STREAM of DEVICE: counts it. */
void tap_end(int device, uint64_t stream);

/* The name of the kernel FUNCTION, as tap_launch() takes it; 0: unknown. */
uint32_t tap_name(const void *function);

/* A kernel was launched: FUNCTION is a host stub's address that was registered,
 * or a handle of the driver's or the runtime's. */
void tap_launch(const struct real_call *call, const void *function,
                 const struct kernel_launch *launch);

/* A matrix product was called under NAME: all but its device is in G. */
void tap_product(const struct real_call *call, uint32_t name,
                 const struct gemm *g);

/* The device has been waited for. */
void tap_synchronized(const struct real_call *call);

/* Says that the handle KERNEL stands for what the host stub HOST does. */
void tap_kernel_of(const void *kernel, const void *host);

void tap_copy(const struct real_call *call, uint64_t destination,
               uint64_t source, uint64_t bytes, int direction, uint64_t stream,
               bool blocking);
void tap_set(const struct real_call *call, uint64_t address, uint64_t value,
              uint64_t bytes, uint64_t stream, bool blocking);

/* Host memory that CUDA knows of. */
void tap_host(const void *p, uint64_t bytes, enum host_kind kind,
               uint32_t flags);

/* STREAM is captured from now on; until now, into GRAPH. */
void tap_capture(uint64_t stream);
void tap_captured(uint64_t stream, const void *graph);
void tap_instantiated(const struct real_call *call, const void *exec,
                       const void *graph);
void tap_graph(const struct real_call *call, const void *exec,
                uint64_t stream);

#endif
