/* SPDX-License-Identifier: Apache-2.0
 * The activity interface. Calls and work are kept by the core (run/activity.h)
 * while a kind is enabled, and become records in the program's buffers when it
 * flushes. Because Kineto flushes only where it has given a buffer, one is
 * asked for when a kind is enabled; and a program that flushes seldom has its
 * buffers filled when it calls us anyway. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/run/process.h"
#include "capture/cupti/buffer.h"
#include "capture/cupti/timestamp.h"

#define KINDS     64
#define TOGETHER  256  /* activities that are taken at a time */
#define FULL      8192 /* so many wait at most while the program calls us */
#define FOREVER   UINT64_MAX
#define ATTRIBUTES 32

/* Of which calls there are records: from a first one until before a last. */
static struct window {
    uint64_t from, until;
} windows[KINDS];
static uint32_t enabled; /* kinds */

/* --- one thread at a time ------------------------------------------------- */

/* The process whose thread fills buffers: a child of fork() may find that of
 * its parent. */
static _Atomic int filling;
static _Thread_local bool fills;

static bool fill_begin(void)
{
    int nobody = 0, me = getpid();

    if (fills) /* called by the program's own function */
        return false;
    while (!atomic_compare_exchange_weak(&filling, &nobody, me)) {
        if (nobody == me)
            sched_yield();
        nobody = nobody == me ? 0 : nobody;
    }
    return fills = true;
}

static void fill_end(void)
{
    fills = false;
    atomic_store(&filling, 0);
}

/* --- records -------------------------------------------------------------- */

static bool is_wanted(uint32_t kind, const struct activity *a)
{
    return windows[kind].from <= a->call && a->call < windows[kind].until;
}

static void activity_put(const struct activity *a)
{
    union record r;

    for (uint32_t kind = 1; kind < KINDS; kind++)
        if (windows[kind].from && is_wanted(kind, a) &&
            record_make(&r, (CUpti_ActivityKind)kind, a))
            buffer_put(&r, (CUpti_ActivityKind)kind);
}

/* All that waits becomes records. */
static void drain_records(void)
{
    static struct activity some[TOGETHER];
    bool settle = true;
    size_t n;

    timestamp_look();
    do {
        n = memsim_activity_take(some, TOGETHER, settle);
        for (size_t i = 0; i < n; i++)
            activity_put(&some[i]);
        settle = false;
    } while (n);
    buffer_lost(memsim_activity_lost());
}

static void drain_if_full(void)
{
    if (memsim_activity_count() < FULL || !fill_begin())
        return;
    drain_records();
    fill_end();
}

/* --- what is recorded ----------------------------------------------------- */

/* Is KIND one that we make records of, or that never has any here? */
static bool is_served(CUpti_ActivityKind kind)
{
    return record_bytes(kind) || kind == CUPTI_ACTIVITY_KIND_OVERHEAD;
}

static void note_without_clock(void)
{
    if (memsim_session() && !memsim_session()->simulated_clock)
        memsim_note("CUPTI reports no activities, and torch.profiler no device "
                    "times, with --real-clock");
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if ((unsigned)kind >= KINDS || !is_served(kind))
        return CUPTI_ERROR_NOT_SUPPORTED;
    if (!fill_begin())
        return CUPTI_ERROR_INVALID_OPERATION;
    if (!windows[kind].from || windows[kind].until != FOREVER) {
        drain_records();
        windows[kind] = (struct window){memsim_activity_calls() + 1, FOREVER};
        enabled++;
        memsim_activity_listen(true);
    }
    buffer_ready();
    note_without_clock();
    fill_end();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    if ((unsigned)kind >= KINDS || !is_served(kind))
        return CUPTI_ERROR_NOT_SUPPORTED;
    if (!fill_begin())
        return CUPTI_ERROR_INVALID_OPERATION;
    if (windows[kind].from && windows[kind].until == FOREVER) {
        windows[kind].until = memsim_activity_calls() + 1;
        enabled--;
    }
    fill_end();
    return CUPTI_SUCCESS;
}

/* There is one context for each device, and all are recorded. */
CUptiResult cuptiActivityEnableContext(CUcontext context,
                                       CUpti_ActivityKind kind)
{
    return context ? cuptiActivityEnable(kind) : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityDisableContext(CUcontext context,
                                        CUpti_ActivityKind kind)
{
    return context ? cuptiActivityDisable(kind)
                   : CUPTI_ERROR_INVALID_PARAMETER;
}

/* --- buffers -------------------------------------------------------------- */

CUptiResult
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                               CUpti_BuffersCallbackCompleteFunc complete)
{
    if (!request || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!fill_begin())
        return CUPTI_ERROR_INVALID_OPERATION;
    buffers_register(request, complete);
    if (enabled)
        buffer_ready();
    fill_end();
    return CUPTI_SUCCESS;
}

/* Where nothing is enabled the core keeps nothing more, and a forced flush
 * gives back a buffer without records too. */
static void flush_buffers(bool forced)
{
    drain_records();
    if (!enabled)
        memsim_activity_listen(false);
    buffer_complete(forced && !enabled);
    if (enabled)
        buffer_ready();
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    if (!buffers_registered())
        return CUPTI_ERROR_INVALID_OPERATION;
    if (!fill_begin())
        return CUPTI_ERROR_INVALID_OPERATION;
    flush_buffers(flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    fill_end();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize(void)
{
    if (!fill_begin())
        return CUPTI_ERROR_INVALID_OPERATION;
    for (uint32_t kind = 0; kind < KINDS; kind++)
        if (windows[kind].from && windows[kind].until == FOREVER)
            windows[kind].until = memsim_activity_calls() + 1;
    enabled = 0;
    flush_buffers(true);
    memset(windows, 0, sizeof windows);
    buffers_register(NULL, NULL);
    timestamp_register(NULL);
    fill_end();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes,
                                       CUpti_Activity **record)
{
    uint8_t *next = buffer;

    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (*record) {
        size_t size = record_bytes((*record)->kind);
        if (!size)
            return CUPTI_ERROR_INVALID_KIND;
        next = (uint8_t *)*record + size;
    }
    size_t at = (size_t)(next - buffer);
    if (at >= bytes || bytes - at < sizeof(CUpti_Activity))
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    size_t size = record_bytes(((CUpti_Activity *)next)->kind);
    if (!size || size > bytes - at)
        return CUPTI_ERROR_INVALID_KIND;
    *record = (CUpti_Activity *)next;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context,
                                              uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    if (!dropped)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = buffer_lost_take();
    return CUPTI_SUCCESS;
}

/* --- beside --------------------------------------------------------------- */

CUptiResult
cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                       uint64_t id)
{
    drain_if_full();
    return memsim_activity_push((uint32_t)kind, id)
               ? CUPTI_SUCCESS
               : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult
cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                      uint64_t *last)
{
    uint64_t id;

    if ((uint32_t)kind >= ACTIVITY_TAG_KINDS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!memsim_activity_pop((uint32_t)kind, &id))
        return CUPTI_ERROR_QUEUE_EMPTY;
    if (last)
        *last = id;
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
    if (!function)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!fill_begin())
        return CUPTI_ERROR_INVALID_OPERATION;
    timestamp_register(function);
    fill_end();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    if (!timestamp)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = timestamp_now();
    return CUPTI_SUCCESS;
}

/* Sizes of buffers that we do not have are kept for who asks for them. */
static struct {
    uint64_t value;
    size_t bytes;
} attributes[ATTRIBUTES];

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute,
                                      size_t *bytes, void *value)
{
    if (!bytes || !value || (unsigned)attribute >= ATTRIBUTES)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!*bytes || *bytes > sizeof attributes->value)
        return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    memcpy(&attributes[attribute].value, value, *bytes);
    attributes[attribute].bytes = *bytes;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute,
                                      size_t *bytes, void *value)
{
    if (!bytes || !value || (unsigned)attribute >= ATTRIBUTES)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!attributes[attribute].bytes)
        return CUPTI_ERROR_NOT_SUPPORTED;
    if (*bytes < attributes[attribute].bytes)
        return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    *bytes = attributes[attribute].bytes;
    memcpy(value, &attributes[attribute].value, *bytes);
    return CUPTI_SUCCESS;
}
