/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/stream.h"

#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/diagnose/misuse.h"
#include "capture/core/work/mem_pool.h"
#include "capture/core/diagnose/host_read.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/live.h"
#include "capture/core/run/process.h"
#include "capture/core/torch/tag_operator.h"
#include "capture/core/run/record.h"
#include "capture/core/work/submit.h"
#include "capture/core/torch/torch.h"
#include "capture/core/memory/host.h"
#include "capture/core/torch/read_type.h"
#include "capture/core/memory/values.h"
#include "capture/core/memory/values_return.h"
#include "common/trace/session.h"

#define DEFAULT_STREAMS 3 /* handles 0, 1 and 2 */
#define COPY_DEFAULT    4 /* cudaMemcpyDefault */

const struct stream *memsim_stream_get(uint64_t handle)
{
    return memsim_handle_get(HANDLE_STREAM, (void *)handle);
}

/* What the default streams wait for, and, of all streams that the legacy one
 * waits for and that wait for it: those without cudaStreamNonBlocking. */
static struct await_mask default_awaits[SESSION_DEVICES][DEFAULT_STREAMS];
static struct await_mask blocking_awaits[SESSION_DEVICES];

/* STREAM's own mask, and its BLOCKING streams', or NULL; NULL: no stream. */
static struct await_mask *awaits_of(uint64_t handle,
                                    struct await_mask **blocking)
{
    int device = memsim_device_current();

    if (handle < DEFAULT_STREAMS) {
        *blocking = &blocking_awaits[device];
        return &default_awaits[device][handle];
    }
    struct stream *s = memsim_handle_get(HANDLE_STREAM, (void *)handle);
    *blocking = s && !(s->flags & STREAM_NON_BLOCKING)
                    ? &blocking_awaits[s->device]
                    : NULL;
    return s ? &s->awaits : NULL;
}

uint64_t stream_awaits(uint64_t handle)
{
    struct await_mask *blocking, *own = awaits_of(handle, &blocking);

    if (!own)
        return 0;
    return await_bits(own) | (blocking ? await_bits(blocking) : 0);
}

void memsim_stream_awaits(uint64_t handle, uint64_t bits)
{
    struct await_mask *blocking, *own = awaits_of(handle, &blocking);

    if (!own || !bits)
        return;
    await_add(own, bits);
    if (blocking)
        await_add(blocking, bits);
}

int memsim_stream_device(uint64_t handle, int *device)
{
    if (handle < DEFAULT_STREAMS) {
        *device = memsim_device_current();
        int rc = memsim_device_open(*device);
        return rc ? rc : capture_admits(NULL);
    }
    const struct stream *stream = memsim_stream_get(handle);
    if (!stream)
        return misuse_handle(HANDLE_STREAM, handle);
    *device = stream->device;
    int rc = device_fault(*device);
    return rc ? rc : capture_admits(stream);
}

int memsim_stream_given(uint64_t handle, int *device, const char *function)
{
    int rc = memsim_stream_device(handle, device);

    if (rc)
        memsim_misuse_call(function);
    else
        stream_await(handle);
    return rc;
}

int memsim_stream_create(uint32_t flags, int priority, uint64_t *handle)
{
    static _Atomic uint64_t streams = DEFAULT_STREAMS;
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (rc)
        return rc;
    rc = memsim_device_library(device, "streams",
                               memsim_device_gpu()->streams_bytes);
    if (rc)
        return rc;
    torch_observe();
    struct stream *stream = memsim_handle_new(HANDLE_STREAM, sizeof *stream);
    if (!stream)
        return CORE_OUT_OF_MEMORY;
    *stream = (struct stream){.device = device,
                              .flags = flags,
                              .priority = priority,
                              .id = streams++};
    *handle = (uint64_t)stream;
    SUBMIT(STREAM_CREATE, .device = (uint64_t)device, .stream = *handle,
           .flags = flags, .priority = (uint64_t)(int64_t)priority);
    return CORE_OK;
}

int memsim_stream_destroy(uint64_t handle)
{
    int device;
    int rc = memsim_stream_device(handle, &device);

    if (rc || handle < DEFAULT_STREAMS)
        return rc ? rc : CORE_INVALID_HANDLE;
    capture_forget_stream(memsim_stream_get(handle));
    SUBMIT(STREAM_DESTROY, .device = (uint64_t)device, .stream = handle);
    return memsim_handle_free(HANDLE_STREAM, (void *)handle);
}

/* The device of the stream HANDLE, whose work the host may wait for now: a
 * stream that is captured has none. */
static int device_of_waiting(uint64_t handle, int *device)
{
    int rc = memsim_stream_device(handle, device);

    return rc ? rc : capture_synchronizes(memsim_stream_get(handle));
}

int memsim_stream_synchronize(uint64_t handle)
{
    int device;
    int rc = device_of_waiting(handle, &device);

    if (rc)
        return rc;
    SUBMIT(SYNC_STREAM, .device = (uint64_t)device, .stream = handle);
    stream_await(handle);
    pool_synchronized(device);
    return CORE_OK;
}

/* What was answered last of the stream HANDLE of DEVICE, which exists. */
static struct record_answer *answer_of(uint64_t handle, int device)
{
    static struct record_answer defaults[SESSION_DEVICES][DEFAULT_STREAMS];
    struct stream *s;

    if (handle < DEFAULT_STREAMS)
        return &defaults[device][handle];
    s = memsim_handle_get(HANDLE_STREAM, (void *)handle);
    return &s->answer;
}

int memsim_stream_query(uint64_t handle)
{
    int device;
    int rc = device_of_waiting(handle, &device);

    if (rc)
        return rc;
    bool ready = !await_any() || await_is_done(stream_awaits(handle));
    RECORD_QUERY(STREAM_QUERY, ready, answer_of(handle, device),
                 .device = (uint64_t)device, .stream = handle);
    return ready ? CORE_OK : CORE_NOT_READY;
}

static int event_find(uint64_t handle, struct event **event)
{
    *event = memsim_handle_get(HANDLE_EVENT, (void *)handle);
    return *event ? CORE_OK : misuse_handle(HANDLE_EVENT, handle);
}

int memsim_stream_wait(uint64_t handle, uint64_t event, bool is_external)
{
    struct stream *stream = memsim_handle_get(HANDLE_STREAM, (void *)handle);
    struct event *found;
    int device;
    int rc = memsim_stream_device(handle, &device);

    if (!rc)
        rc = event_find(event, &found);
    if (!rc && is_external && capture_event(handle, event, false))
        return CORE_OK;
    if (!rc)
        rc = capture_wait_event(stream, handle, found);
    if (rc)
        return rc;
    if (await_any())
        memsim_stream_awaits(handle, await_bits(&found->awaits));
    SUBMIT(STREAM_WAIT, .device = (uint64_t)device, .stream = handle,
           .event = event);
    return CORE_OK;
}

int memsim_event_create(uint32_t flags, uint64_t *handle)
{
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (!rc && flags & EVENT_INTERPROCESS && !(flags & EVENT_DISABLE_TIMING))
        rc = CORE_INVALID_VALUE;
    if (rc)
        return rc;
    struct event *event = memsim_handle_new(HANDLE_EVENT, sizeof *event);
    if (!event)
        return CORE_OUT_OF_MEMORY;
    event->device = device;
    event->flags = flags;
    *handle = (uint64_t)event;
    SUBMIT(EVENT_CREATE, .device = (uint64_t)device, .event = *handle,
           .flags = flags);
    return CORE_OK;
}

int memsim_event_destroy(uint64_t handle)
{
    struct event *event;
    int rc = event_find(handle, &event);

    if (!rc)
        rc = device_fault(event->device);
    if (rc)
        return rc;
    SUBMIT(EVENT_DESTROY, .device = (uint64_t)event->device, .event = handle);
    return memsim_handle_free(HANDLE_EVENT, event);
}

int memsim_event_record(uint64_t handle, uint64_t stream, bool is_external)
{
    struct event *event;
    int device;
    int rc = event_find(handle, &event);

    if (!rc)
        rc = memsim_stream_device(stream, &device);
    if (rc)
        return rc;
    if (device != event->device) {
        misuse_device("an event", event->device, device);
        return CORE_INVALID_HANDLE;
    }
    if (is_external && capture_event(stream, handle, true))
        return CORE_OK;
    event->recorded = true;
    event->stream = stream;
    event->time_ns = clock_now();
    event->awaits = (struct await_mask){0};
    if (await_any())
        await_add(&event->awaits, stream_awaits(stream));
    capture_record_event(memsim_stream_get(stream), event);
    SUBMIT(EVENT_RECORD, .device = (uint64_t)device, .stream = stream,
           .event = handle);
    return CORE_OK;
}

/* The host cannot ask for an event that lies in a capture, nor for any while
 * calls like this one are forbidden. */
static int event_host_check(uint64_t handle, struct event **event)
{
    int rc = event_find(handle, event);

    if (!rc)
        rc = device_fault((*event)->device);
    if (rc)
        return rc;
    rc = capture_asks_event(*event);
    return rc ? rc : memsim_capture_forbids();
}

/* PyTorch's allocator asks for an event that the simulated GPU has not come to.
 * Returns whether the answer is that the event is ready. */
static bool is_freed_early(void)
{
    static _Atomic bool told;
    const struct session *s = memsim_session();

    if (s && s->late_frees)
        return false;
    if (!told && !atomic_exchange(&told, true))
        memsim_note(
            "PyTorch freed blocks that another stream uses (record_stream) "
            "before the GPU was done with them. On a GPU they stay taken until "
            "then, so more may be reserved: --late-frees shows it");
    return true;
}

int memsim_event_query(uint64_t handle, bool by_allocator)
{
    struct event *event;
    int rc = event_host_check(handle, &event);

    if (rc)
        return rc;
    bool ready = !await_any() || await_is_done(await_bits(&event->awaits));
    if (ready && by_allocator && live_is_behind(handle))
        ready = is_freed_early();
    RECORD_QUERY(EVENT_QUERY, ready, &event->answer,
                 .device = (uint64_t)event->device, .event = handle);
    return ready ? CORE_OK : CORE_NOT_READY;
}

int memsim_event_synchronize(uint64_t handle)
{
    struct event *event;
    int rc = event_host_check(handle, &event);

    if (rc)
        return rc;
    SUBMIT(SYNC_EVENT, .device = (uint64_t)event->device, .event = handle);
    if (await_any())
        await_reach(await_bits(&event->awaits));
    pool_synchronized(event->device);
    return CORE_OK;
}

/* When EVENT was reached. A program that asks has waited for it, or was told
 * that it is ready; where it is not by the simulation, it waits now. */
static uint64_t event_ns(uint64_t handle, const struct event *event)
{
    uint64_t ns;

    if (!live_event(handle, &ns))
        return ns;
    if (!live_is_on)
        return event->time_ns;
    SUBMIT(SYNC_EVENT, .device = (uint64_t)event->device, .event = handle);
    return live_event(handle, &ns) ? event->time_ns : ns;
}

/* "Interoperability with multiple devices" of the programming guide: events of
 * different devices have no time between them. */
int memsim_event_elapsed(uint64_t start, uint64_t end, float *ms)
{
    struct event *a, *b;
    int rc = event_find(start, &a);

    if (!rc)
        rc = event_find(end, &b);
    if (rc)
        return rc;
    if (!ms)
        return CORE_INVALID_VALUE;
    if (a->device != b->device) {
        misuse_device("an event", a->device, b->device);
        return CORE_INVALID_HANDLE;
    }
    if (!a->recorded || !b->recorded ||
        (a->flags | b->flags) & EVENT_DISABLE_TIMING)
        return CORE_INVALID_HANDLE;
    rc = device_fault(a->device);
    if (rc)
        return rc;
    uint64_t end_ns = event_ns(end, b);
    *ms = (float)((double)(int64_t)(end_ns - event_ns(start, a)) / 1e6);
    return CORE_OK;
}

int memsim_device_synchronize(void)
{
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (!rc)
        rc = memsim_capture_forbids();
    if (rc)
        return rc;
    SUBMIT(SYNC_DEVICE, .device = (uint64_t)device);
    await_reach(UINT64_MAX);
    pool_synchronized(device);
    return CORE_OK;
}

int memsim_stream_call(uint64_t stream, void (*function)(void *), void *data)
{
    int device;
    int rc = memsim_stream_device(stream, &device);

    if (rc)
        return rc;
    stream_await(stream);
    const uint64_t step[STEP_WORDS] = {(uint64_t)function, (uint64_t)data};
    bool captured = memsim_capture_step(stream, STEP_HOST, step);
    SUBMIT(HOST_FUNCTION, .device = (uint64_t)device, .stream = stream);
    if (!captured)
        function(data);
    return CORE_OK;
}

int stream_copy_direction(uint64_t destination, uint64_t source)
{
    bool to = memsim_values_is_device(destination);
    bool from = memsim_values_is_device(source);

    if (to)
        return from ? TRACE_DEVICE_TO_DEVICE : TRACE_HOST_TO_DEVICE;
    return from ? TRACE_DEVICE_TO_HOST : TRACE_HOST_TO_HOST;
}

bool stream_range_is_live(uint64_t address, uint64_t bytes)
{
    uint64_t start, length;

    if (!memsim_values_is_device(address))
        return true;
    return memsim_device_find(address, NULL, &start, &length) &&
           bytes <= start + length - address;
}

/* Whether the host's side of a copy is pinned. */
static bool host_is_pinned(uint64_t destination, uint64_t source, int direction)
{
    struct host_range range;

    switch (direction) {
    case TRACE_HOST_TO_DEVICE:
        return memsim_host_find(source, &range);
    case TRACE_DEVICE_TO_HOST:
        return memsim_host_find(destination, &range);
    default:
        return false;
    }
}

/* A flag was copied to ADDRESS. That is how PyTorch asks all() of one flag, and
 * where it is not known, a check finds nothing wrong. */
static void flag_copied(uint64_t address)
{
    if (values_known(address, 1) || !operator_runs("aten::all"))
        return;
    char *to = values_write(address, 1, false);
    if (to)
        *to = 1;
    values_mark_counts(address, 1);
}

/* Integers and flags from the host are known of more bytes: a mask of samples
 * of sound. The bytes of an image are too many. Floating numbers may be those
 * of a host tensor whose random numbers are not drawn (doc/values.md). */
static bool integers_write(uint64_t destination, uint64_t source,
                           uint64_t bytes)
{
    if (bytes <= VALUES_COPY_BYTES)
        return false;
    enum number_type type = torch_read_type();
    if (type == NUMBER_NONE || number_is_float(type))
        return false;
    return values_give_integers(destination, source, bytes,
                                type == NUMBER_U8 ? 0 : number_bytes(type));
}

/* What a copy in DIRECTION that is not to the host does. */
static void device_write(uint64_t destination, uint64_t source, uint64_t bytes,
                         int direction)
{
    bool is_given = direction == TRACE_HOST_TO_DEVICE &&
                    (values_return_copy(destination, source, bytes) ||
                     integers_write(destination, source, bytes));

    if (!is_given)
        memsim_values_copy(destination, source, bytes);
    if (bytes == 1 && direction == TRACE_DEVICE_TO_DEVICE)
        flag_copied(destination);
}

int memsim_copy(uint64_t destination, uint64_t source, uint64_t bytes,
                int direction, uint64_t stream, bool blocking)
{
    int device, real = stream_copy_direction(destination, source);
    int rc = memsim_stream_device(stream, &device);

    if (rc || !bytes)
        return rc;
    if (direction < 0 || direction > COPY_DEFAULT)
        return CORE_INVALID_DIRECTION;
    if (!destination || !source)
        return CORE_INVALID_VALUE;
    bool live = stream_range_is_live(destination, bytes);
    if (!live || !stream_range_is_live(source, bytes)) {
        misuse_range(live ? source : destination);
        return CORE_INVALID_VALUE;
    }
    stream_await(stream);
    int peer = device;
    memsim_device_find(destination, &peer, NULL, NULL);
    const uint64_t step[STEP_WORDS] = {destination, source, bytes};
    if (!memsim_capture_step(stream, STEP_COPY, step)) {
        if (real == TRACE_DEVICE_TO_HOST)
            host_read(destination, source, bytes, device, stream);
        else
            device_write(destination, source, bytes, real);
    }
    SUBMIT(COPY, .device = (uint64_t)device, .stream = stream,
           .direction = (uint64_t)real, .destination = destination,
           .source = source, .bytes = bytes, .blocking = blocking,
           .peer = (uint64_t)peer,
           .pinned = host_is_pinned(destination, source, real));
    return CORE_OK;
}

int memsim_set(uint64_t address, uint64_t value, uint64_t unit, uint64_t count,
               uint64_t stream, bool blocking)
{
    int device;
    int rc = memsim_stream_device(stream, &device);

    if (rc || !count)
        return rc;
    if (!memsim_values_is_device(address) ||
        !stream_range_is_live(address, unit * count)) {
        misuse_range(address);
        return CORE_INVALID_VALUE;
    }
    stream_await(stream);
    const uint64_t step[STEP_WORDS] = {address, value, unit, count};
    if (!memsim_capture_step(stream, STEP_SET, step))
        memsim_values_fill(address, &value, unit, count);
    SUBMIT(SET, .device = (uint64_t)device, .stream = stream,
           .address = address, .value = value, .bytes = unit * count,
           .blocking = blocking);
    return CORE_OK;
}
