/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/live.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/clock_files.h"
#include "capture/core/run/clock_gap.h"
#include "capture/core/run/clock_sleep.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/meeting.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "common/trace/op.h"
#include "common/trace/session.h"
#include "common/trace/trace_write.h"

/* Address space, of which a run touches a few MiB. */
#define ARENA_MOST  (UINT64_C(8) << 30)
#define ARENA_LEAST (UINT64_C(64) << 20)
#define KINDS       256

bool live_is_on;
void (*live_watch)(const struct trace_put *record);

static const struct live_ops *ops;
static bool simulates; /* OPS has not failed */
static bool loaded, begun;
static bool wanted[KINDS];
static bool failed;
static const struct live_listener *listener;
static uint64_t called_ns; /* the simulation's time after the last operation */
static uint64_t origin_ns; /* of the simulation, on the program's clock */

/* --- loading -------------------------------------------------------------- */

static void *image_map(size_t *bytes)
{
    struct stat st;
    int fd = process_file(SESSION_CLOCK);

    if (fd < 0)
        return NULL;
    void *image = MAP_FAILED;
    if (!fstat(fd, &st) && st.st_size > 0) {
        *bytes = (size_t)st.st_size;
        image = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return image == MAP_FAILED ? NULL : image;
}

static void *arena_map(size_t *bytes)
{
    void *arena = NULL;

    for (*bytes = ARENA_MOST; *bytes >= ARENA_LEAST; *bytes /= 2)
        if ((arena = memsim_pages_reserve(0, *bytes)))
            break;
    return arena;
}

static const struct live_ops *library_open(void)
{
    char path[512 + sizeof LIVE_LIBRARY];

    snprintf(path, sizeof path, "%s/" LIVE_LIBRARY, loader_directory());
    void *library = REAL(dlopen)(path, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, LIVE_ENTRY) : NULL;
}

/* What of the records orders work, or says how: the rest would only pass time
 * that the next of these passes. */
static void wanted_set(bool steps)
{
    static const uint64_t fields[TRACE_FIELDS_MAX];

    for (int kind = 0; kind < KINDS; kind++)
        wanted[kind] = kind == TRACE_NAME || kind == TRACE_CAPTURE_JOIN ||
                       kind == TRACE_CAPTURE_END || kind == TRACE_PROCESS ||
                       kind == TRACE_COMMUNICATOR ||
                       op_of_record((enum trace_kind)kind, fields).kind;
    wanted[TRACE_PHASE] = wanted[TRACE_RANGE_PUSH] = wanted[TRACE_RANGE_POP] =
        steps;
}

static const char *simulation_open(void)
{
    size_t image_bytes = 0, arena_bytes;
    void *image = image_map(&image_bytes);
    void *arena = image ? arena_map(&arena_bytes) : NULL;
    const struct live_ops *found = arena ? library_open() : NULL;

    if (!image)
        return "its file of costs is missing";
    if (!found)
        return arena ? LIVE_LIBRARY " cannot be loaded"
                     : "there is no address space for it";
    const char *wrong = found->open(image, image_bytes, arena, arena_bytes);
    if (wrong)
        return wrong;
    wanted_set(found->counts_steps());
    clock_sleep_start();
    ops = found;
    return NULL;
}

void live_load(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    if (loaded || !memsim_session() || !memsim_session()->simulated_clock)
        return;
    pthread_mutex_lock(&once);
    const char *wrong = loaded ? NULL : simulation_open();
    loaded = true;
    pthread_mutex_unlock(&once);
    if (wrong)
        memsim_note("the clock of %s is this machine's, not the simulated "
                    "one: %s",
                    program_invocation_short_name, wrong);
}

/* --- records -------------------------------------------------------------- */

void live_start(void)
{
    core_lock(LOCK_RECORD);
    simulates = ops;
    live_is_on = simulates || live_watch;
    begun = false;
    live_listen(listener);
    core_unlock(LOCK_RECORD);
}

/* The simulation has failed for good. */
static void live_fail(void)
{
    simulates = false;
    live_is_on = live_watch != NULL;
    failed = true;
    meeting_leave();
}

/* The program's last work is done, for those that wait for it. */
static void live_leave(void)
{
    core_lock(LOCK_RECORD);
    if (simulates && ops->leave())
        live_fail();
    meeting_leave();
    core_unlock(LOCK_RECORD);
    if (meeting_forsook())
        memsim_note("a rank's clock went on without another rank, which did "
                    "not come to a collective: it waited for something else, "
                    "or never makes the call. What that program shows of its "
                    "times is too short by that wait");
}

void live_conclude(void)
{
    char text[48];

    live_leave();
    if (failed)
        memsim_note("the clock of %s was simulated up to a point, and then "
                    "this machine's: there was no memory for the simulation",
                    program_invocation_short_name);
    if (!simulates || !called_ns)
        return;
    int n = snprintf(text, sizeof text, TRACE_SIMULATED "%" PRIu64, called_ns);
    RECORD_TEXT(SETTING, text, (size_t)n);
}

void live_after_fork(void)
{
    clock_sleep_after_fork();
    meeting_after_fork();
    live_is_on = simulates = loaded = false;
    ops = NULL;
    if (listener)
        listener->forked();
    listener = NULL;
}

/* Other ranks wait for this one. */
static __attribute__((noinline)) void offer(bool waiting)
{
    if (simulates && ops->offer(waiting))
        live_fail();
}

unsigned memsim_live_lacks(uint32_t looks, unsigned most_ms)
{
    unsigned soon_ms = 2 + looks / 4;

    if (memsim_meeting_is_wanted()) {
        core_lock(LOCK_RECORD);
        offer(true);
        core_unlock(LOCK_RECORD);
    }
    meeting_lacks();
    return soon_ms < most_ms ? soon_ms : most_ms;
}

/* What the simulation slept, because other ranks were late in this machine's
 * time, is none of the program's. */
static void sleep_take_out(void)
{
    uint64_t slept_ns = meeting_slept();

    if (!slept_ns)
        return;
    clock_go_on(slept_ns);
    clock_gap_skip(slept_ns);
}

/* Its part of the time since RECORD was written is not the program's. */
void live_take(const struct trace_put *record)
{
    struct live_now now;

    if (live_watch)
        live_watch(record);
    if (!simulates || (begun && !wanted[record->kind & (KINDS - 1)]))
        return;
    if (ops->take(record, &now)) {
        live_fail();
        clock_release();
        if (listener)
            listener->timed(origin_ns);
        return;
    }
    called_ns = now.called_ns;
    clock_waited(now.waited_ns);
    uint64_t slept_ns = meeting_slept();
    if (__builtin_expect(slept_ns != 0, false))
        clock_gap_skip(slept_ns);
    uint64_t host_ns = clock_host(CLOCK_MONOTONIC);
    if (!begun)
        origin_ns = clock_user_at(host_ns) - now.host_ns;
    begun = true;
    clock_hold(host_ns, record->time_ns);
    const struct clock_line line = {.host_ns = host_ns,
                                    .user_ns = origin_ns + now.host_ns,
                                    .come_ns = origin_ns + now.come_ns,
                                    .factor = ops->factor()};
    origin_ns = clock_publish(&line, listener) - now.host_ns;
    clock_files_put(host_ns, origin_ns + now.host_ns);
    if (__builtin_expect(listener != NULL, false))
        listener->timed(origin_ns);
    if (__builtin_expect(
            atomic_load_explicit(meeting_wanted, memory_order_relaxed), false))
        offer(false);
}

int live_event(uint64_t event, uint64_t *ns)
{
    core_lock(LOCK_RECORD);
    int rc = simulates ? ops->event(event, ns) : -1;
    sleep_take_out();
    core_unlock(LOCK_RECORD);
    return rc;
}

bool live_is_behind(uint64_t event)
{
    core_lock(LOCK_RECORD);
    bool is_behind = simulates && ops->behind(event);
    sleep_take_out();
    core_unlock(LOCK_RECORD);
    return is_behind;
}

/* --- who listens ---------------------------------------------------------- */

void live_listen(const struct live_listener *who)
{
    listener = who;
    if (simulates)
        ops->listen(who ? who->put : NULL);
}

void live_settle(void)
{
    if (simulates && ops->settle())
        live_fail();
    sleep_take_out();
    if (listener)
        listener->timed(origin_ns);
}

uint64_t live_calls(void)
{
    return simulates ? ops->calls() : 0;
}
