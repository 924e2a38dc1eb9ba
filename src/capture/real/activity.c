/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/real/activity.h"

#include <cupti.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/core/run/clock.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/process.h"
#include "capture/real/real.h"
#include "common/trace/device_log.h"
#include "common/trace/session_table.h"

#define BUFFER_BYTES (UINT64_C(1) << 20)
#define TAG          CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2
#define OUT_BYTES    (64u << 10)

/* In the order in which they are turned on. */
static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET,
};
#define KINDS (sizeof kinds / sizeof *kinds)

#define FUNCTIONS(X)                                                           \
    X(cuptiActivityRegisterCallbacks)                                          \
    X(cuptiActivityEnable)                                                     \
    X(cuptiActivityDisable)                                                    \
    X(cuptiActivityFlushAll)                                                   \
    X(cuptiActivityGetNextRecord)                                              \
    X(cuptiActivityGetNumDroppedRecords)                                       \
    X(cuptiActivityPushExternalCorrelationId)                                  \
    X(cuptiActivityPopExternalCorrelationId)                                   \
    X(cuptiGetTimestamp)                                                       \
    X(cuptiGetResultString)

static struct {
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
} cupti;

static bool is_on;
static pid_t owner;       /* a child of fork() has none */
static int64_t offset_ns; /* the trace's clock minus CUPTI's */
static int out = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static char pending[OUT_BYTES];
static size_t pending_bytes;

/* --- the file ------------------------------------------------------------- */

static void out_flush(void)
{
    size_t at = 0;

    while (at < pending_bytes) {
        ssize_t n = write(out, pending + at, pending_bytes - at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    pending_bytes = 0;
}

static void out_put(struct device_log_row *row, const char *text)
{
    static const char padding[8];
    uint32_t length = text ? (uint32_t)strnlen(text, OUT_BYTES / 2) : 0;
    uint32_t padded = device_log_padded(length);

    row->text_bytes = length;
    if (pending_bytes + sizeof *row + padded > sizeof pending)
        out_flush();
    memcpy(pending + pending_bytes, row, sizeof *row);
    pending_bytes += sizeof *row;
    memcpy(pending + pending_bytes, text ? text : "", length);
    memcpy(pending + pending_bytes + length, padding, padded - length);
    pending_bytes += padded;
}

/* --- records -------------------------------------------------------------- */

static uint64_t clock_of(uint64_t ns)
{
    return ns ? ns + (uint64_t)offset_ns : 0;
}

/* The kinds' layouts begin alike in all versions of CUPTI since 9.0. */
static void put_kernel(const CUpti_ActivityKernel9 *k)
{
    struct device_log_row row = {
        .kind = DEVICE_LOG_KERNEL,
        .correlation = k->correlationId,
        .start_ns = clock_of(k->start),
        .end_ns = clock_of(k->end),
        .device = k->deviceId,
        .stream = k->streamId,
        .grid = {(uint32_t)k->gridX, (uint32_t)k->gridY, (uint32_t)k->gridZ},
        .block = {(uint32_t)k->blockX, (uint32_t)k->blockY,
                  (uint32_t)k->blockZ},
        .shared_bytes = (uint32_t)k->dynamicSharedMemory};

    out_put(&row, k->name);
}

static void put_copy(const CUpti_ActivityMemcpy5 *c)
{
    struct device_log_row row = {.kind = DEVICE_LOG_COPY,
                                 .correlation = c->correlationId,
                                 .start_ns = clock_of(c->start),
                                 .end_ns = clock_of(c->end),
                                 .bytes = c->bytes,
                                 .device = c->deviceId,
                                 .stream = c->streamId,
                                 .copy_kind = c->copyKind};

    out_put(&row, NULL);
}

static void put_set(const CUpti_ActivityMemset4 *s)
{
    struct device_log_row row = {.kind = DEVICE_LOG_SET,
                                 .correlation = s->correlationId,
                                 .start_ns = clock_of(s->start),
                                 .end_ns = clock_of(s->end),
                                 .bytes = s->bytes,
                                 .device = s->deviceId,
                                 .stream = s->streamId};

    out_put(&row, NULL);
}

static void put_call(const CUpti_ActivityExternalCorrelation *e)
{
    struct device_log_row row = {.kind = DEVICE_LOG_CALL,
                                 .correlation = e->correlationId,
                                 .number = e->externalId};

    if (e->externalKind == TAG)
        out_put(&row, NULL);
}

static void record_put(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        put_kernel((const CUpti_ActivityKernel9 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        put_copy((const CUpti_ActivityMemcpy5 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        put_set((const CUpti_ActivityMemset4 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        put_call((const CUpti_ActivityExternalCorrelation *)record);
        break;
    default:
        break;
    }
}

static void CUPTIAPI buffer_request(uint8_t **buffer, size_t *bytes,
                                    size_t *most)
{
    void *p = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *buffer = p == MAP_FAILED ? NULL : p;
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *most = 0;
}

static void CUPTIAPI buffer_done(CUcontext context, uint32_t stream,
                                 uint8_t *buffer, size_t bytes, size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t dropped = 0;

    pthread_mutex_lock(&lock);
    while (valid && !cupti.cuptiActivityGetNextRecord(buffer, valid, &record))
        record_put(record);
    cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
    if (dropped)
        out_put(&(struct device_log_row){.kind = DEVICE_LOG_LOST,
                                         .number = dropped},
                NULL);
    out_flush();
    pthread_mutex_unlock(&lock);
    munmap(buffer, bytes ? bytes : BUFFER_BYTES);
}

/* --- begin and end -------------------------------------------------------- */

static bool functions_find(void)
{
#define X(name) cupti.name = (__typeof__(&name))real_look_up(#name);
    FUNCTIONS(X)
#undef X
    return cupti.cuptiActivityRegisterCallbacks && cupti.cuptiActivityEnable &&
           cupti.cuptiActivityDisable && cupti.cuptiActivityFlushAll &&
           cupti.cuptiActivityGetNextRecord &&
           cupti.cuptiActivityGetNumDroppedRecords &&
           cupti.cuptiActivityPushExternalCorrelationId &&
           cupti.cuptiActivityPopExternalCorrelationId &&
           cupti.cuptiGetTimestamp;
}

/* PyTorch has loaded it; for other programs it lies beside the toolkit. */
static void library_load(void)
{
    static const char *const names[] = {
        "libcupti.so.13", "libcupti.so.12",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
        "/usr/local/cuda/lib64/libcupti.so", "libcupti.so"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (REAL(dlopen)(names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD))
            return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (REAL(dlopen)(names[i], RTLD_LAZY | RTLD_LOCAL))
            return;
}

static const char *result_text(CUptiResult result)
{
    const char *text = NULL;

    if (cupti.cuptiGetResultString)
        cupti.cuptiGetResultString(result, &text);
    return text ? text : "no reason";
}

/* CUPTI_ERROR_INSUFFICIENT_PRIVILEGES and its virtual-machine form. */
static bool is_forbidden(CUptiResult result)
{
    return result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
           result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES;
}

static void note_failed(CUptiResult result)
{
    if (is_forbidden(result))
        memsim_note("no device times: CUPTI may not be used by this user; the "
                    "driver's option NVreg_RestrictProfilingToAdminUsers=0, or "
                    "a container with --cap-add=SYS_ADMIN, allows it");
    else
        memsim_note("no device times: CUPTI answers %d, %s", (int)result,
                    result_text(result));
}

static CUptiResult kinds_enable(void)
{
    CUptiResult result = cupti.cuptiActivityRegisterCallbacks(buffer_request,
                                                              buffer_done);

    for (size_t i = 0; i < KINDS && !result; i++)
        result = cupti.cuptiActivityEnable(kinds[i]);
    return result;
}

static void kinds_disable(void)
{
    for (size_t i = 0; i < KINDS; i++)
        cupti.cuptiActivityDisable(kinds[i]);
}

static void activity_finish(void)
{
    if (!is_on || owner != getpid())
        return;
    is_on = false;
    kinds_disable();
    cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

static void clocks_compare(void)
{
    uint64_t theirs = 0, before = clock_now();

    cupti.cuptiGetTimestamp(&theirs);
    offset_ns = (int64_t)((before + clock_now()) / 2 - theirs);
}

static bool file_open(void)
{
    char path[sizeof memsim_session()->directory + 64];
    const struct session_process *slot = process_slot();

    if (!slot)
        return false;
    session_trace_path("", slot->number, path, sizeof path - 8);
    strcat(path, DEVICE_LOG_END);
    out = process_file(path[0] == '/' ? path + 1 : path);
    return out >= 0;
}

static void begin_activity(void)
{
    process_join();
    library_load();
    if (!functions_find()) {
        memsim_note("no device times: libcupti.so was not found; put its "
                    "folder on LD_LIBRARY_PATH");
        return;
    }
    if (!file_open())
        return;
    CUptiResult result = kinds_enable();
    if (result) {
        note_failed(result);
        kinds_disable();
        return;
    }
    clocks_compare();
    owner = getpid();
    is_on = true;
    atexit(activity_finish); /* before the driver's own end */
}

void activity_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, begin_activity);
}

void activity_push(uint64_t number)
{
    if (is_on)
        cupti.cuptiActivityPushExternalCorrelationId(TAG, number);
}

void activity_pop(void)
{
    if (is_on)
        cupti.cuptiActivityPopExternalCorrelationId(TAG, NULL);
}

/* --- a program that profiles itself --------------------------------------- */

/* CUPTI has one pair of callbacks for a process: the program's wins. */
CORE_API CUptiResult
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                               CUpti_BuffersCallbackCompleteFunc complete)
{
    if (is_on) {
        memsim_note("the program uses CUPTI itself, as torch.profiler does: "
                    "there are no device times from there on");
        activity_finish();
    }
    return REAL_FUNCTION(cuptiActivityRegisterCallbacks)(request, complete);
}

static struct process_hook hook = {.at_end = activity_finish};

__attribute__((constructor)) static void activity_hook(void)
{
    process_hook_add(&hook);
}
