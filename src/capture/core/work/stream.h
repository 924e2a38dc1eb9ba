/* SPDX-License-Identifier: Apache-2.0
 * Streams and events. The fake device completes work at once when it is
 * submitted; this code only keeps the state and records the order. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_STREAM_H
#define MEMSIM_CAPTURE_CORE_WORK_STREAM_H

#include <stdbool.h>

#include "capture/core/work/await.h"
#include "capture/core/work/stream_capture.h"
#include "capture/core/base/core.h"
#include "capture/core/run/record.h"

struct stream {
    int device;
    uint32_t flags;
    int priority;
    uint64_t id;                      /* what cudaStreamGetId says */
    uint32_t capture, capture_member; /* stream_capture.c's: 0 is none */
    struct await_mask awaits;
    struct record_answer answer;
};

struct event {
    int device;
    uint32_t flags; /* cudaEventDisableTiming is 2 */
    bool recorded;
    uint64_t stream;
    uint64_t time_ns; /* of the last record */
    struct capture_mark mark;
    struct await_mask awaits; /* what its last record is ordered after */
    struct record_answer answer;
};

#define STREAM_NON_BLOCKING 1u

#define EVENT_DISABLE_TIMING 2u
#define EVENT_INTERPROCESS   4u

/* HANDLE as programs pass it: 0 and 1 are the legacy default stream, 2 the
 * thread's. *DEVICE is the stream's own, or the current one for those three.
 * CORE_OK, CORE_INVALID_HANDLE, or why the device cannot be opened. */
CORE_API int memsim_stream_device(uint64_t handle, int *device);

/* The same for FUNCTION, of another library than the runtime and the driver:
 * the report names it where the program gave it a wrong stream. */
CORE_API int memsim_stream_given(uint64_t handle, int *device,
                                 const char *function);
/* The stream behind HANDLE; NULL for the default ones and for bad handles. */
CORE_API const struct stream *memsim_stream_get(uint64_t handle);

CORE_API int memsim_stream_create(uint32_t flags, int priority,
                                  uint64_t *handle);

CORE_API int memsim_stream_destroy(uint64_t handle);
CORE_API int memsim_stream_synchronize(uint64_t handle);
CORE_API int memsim_stream_query(uint64_t handle);

/* IS_EXTERNAL, here and below: where STREAM is captured, the graph waits at
 * each launch for what EVENT, one from outside, is then. */
CORE_API int memsim_stream_wait(uint64_t stream, uint64_t event,
                                bool is_external);

/* Calls FUNCTION with DATA: at once, since the device has finished by then, or
 * at each launch of the graph that STREAM is being captured into. */
CORE_API int memsim_stream_call(uint64_t stream, void (*function)(void *),
                                void *data);

CORE_API int memsim_event_create(uint32_t flags, uint64_t *handle);
CORE_API int memsim_event_destroy(uint64_t handle);
CORE_API int memsim_event_record(uint64_t event, uint64_t stream,
                                 bool is_external);
CORE_API int memsim_event_query(uint64_t event, bool by_allocator);
CORE_API int memsim_event_synchronize(uint64_t event);

/* Milliseconds from START to END, both recorded with timing on. */
CORE_API int memsim_event_elapsed(uint64_t start, uint64_t end, float *ms);

CORE_API int memsim_device_synchronize(void);

/* A device address must lie, whole range, in a live allocation. */
bool stream_range_is_live(uint64_t address, uint64_t bytes);

/* The work of other processes (await.h) that STREAM waits for; and it waits for
 * BITS, too. */
uint64_t stream_awaits(uint64_t stream);
CORE_API void memsim_stream_awaits(uint64_t stream, uint64_t bits);

/* Before work that is carried out now: the host waits as STREAM does. */
static inline void stream_await(uint64_t stream)
{
    if (await_any())
        await_reach(stream_awaits(stream));
}

/* TRACE_HOST_TO_DEVICE and so on. */
int stream_copy_direction(uint64_t destination, uint64_t source);

/* Copies and sets, in the order and with the checks that both APIs share.
 * DIRECTION is cudaMemcpyKind's; 4 (default) is told from the addresses. */
CORE_API int memsim_copy(uint64_t destination, uint64_t source, uint64_t bytes,
                         int direction, uint64_t stream, bool blocking);
CORE_API int memsim_set(uint64_t address, uint64_t value, uint64_t unit,
                        uint64_t count, uint64_t stream, bool blocking);

#endif
