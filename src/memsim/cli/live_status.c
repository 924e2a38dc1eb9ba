/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/live_status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/time_report.h"

#define SIZE_LENGTH 16

/* --- steps ---------------------------------------------------------------- */

/* The trace may not be there yet. Returns whether it is open. */
static bool open_trace(struct live_steps *s, const char *path)
{
    struct err ignored = {""};

    if (s->open || s->failed || access(path, R_OK))
        return s->open;
    s->path = xstrdup(path);
    s->open = !trace_reader_open(&s->reader, s->path, &ignored);
    s->reader.follows = true;
    if (!s->open) {
        free(s->path); /* its header is not whole yet */
        s->path = NULL;
    }
    return s->open;
}

/* The first step is longer than the others, and begins the count. */
static void note_step(struct live_steps *s, uint64_t predicted_ns)
{
    if (!s->steps++)
        s->first_ns = predicted_ns;
    s->last_ns = predicted_ns;
}

void live_steps_read(struct live_steps *s, const char *path, uint64_t ahead_ns)
{
    struct trace_item item;
    struct err ignored = {""};
    int rc;

    if (!open_trace(s, path))
        return;
    while ((rc = trace_reader_next(&s->reader, &item, &ignored)) > 0) {
        unsigned before = step_tracker_step(&s->tracker);
        step_tracker_take(&s->tracker, &item);
        if (step_tracker_step(&s->tracker) > before)
            note_step(s, item.head.time_ns + ahead_ns);
    }
    if (rc < 0) { /* it was read while it changed: the count ends here */
        trace_reader_close(&s->reader);
        s->open = false;
        s->failed = true;
    }
}

void live_steps_fini(struct live_steps *s)
{
    if (s->open)
        trace_reader_close(&s->reader);
    step_tracker_fini(&s->tracker);
    free(s->path);
    *s = (struct live_steps){.open = false};
}

/* --- the lines ------------------------------------------------------------ */

/* The GPU that came nearest to its end; NULL: none was used. */
static const struct session_device *find_fullest(const struct session *s)
{
    const struct session_device *fullest = NULL;
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < s->device_count; i++) {
        const struct session_device *d = &s->devices[i];
        uint64_t peak = atomic_load(&d->peak_used_bytes);
        uint64_t left = peak < d->capacity_bytes ? d->capacity_bytes - peak : 0;
        if (!peak || left >= least)
            continue;
        least = left;
        fullest = d;
    }
    return fullest;
}

static void write_verdict(const struct session *s,
                          const struct session_device *d, char *text,
                          size_t size)
{
    uint32_t refused = atomic_load(&s->oom_count);
    double percent =
        d ? 100.0 * (double)atomic_load(&d->peak_used_bytes) /
                (double)d->capacity_bytes
          : 0;

    if (!d)
        snprintf(text, size, "no GPU was used yet");
    else if (refused)
        snprintf(text, size, "out of memory: %" PRIu32 " request%s failed",
                 refused, refused > 1 ? "s" : "");
    else if (s->fail_above_percent > 0 && percent > s->fail_above_percent)
        snprintf(text, size, "over the limit of %g%%", s->fail_above_percent);
    else
        snprintf(text, size, "fits so far");
}

static void write_memory(const struct session_device *d, char *text,
                         size_t size)
{
    char used[SIZE_LENGTH], peak[SIZE_LENGTH];
    uint64_t peak_bytes = atomic_load(&d->peak_used_bytes);

    snprintf(text, size, "used %s, peak %s (%.1f%%)",
             units_format_bytes(atomic_load(&d->used_bytes), used,
                                sizeof used),
             units_format_bytes(peak_bytes, peak, sizeof peak),
             100.0 * (double)peak_bytes / (double)d->capacity_bytes);
}

/* Appends to TEXT. The mean is of the steps after the first. */
static void write_step(const struct session *s, const struct live_steps *steps,
                       char *text, size_t size)
{
    char time[32];
    size_t used = strlen(text);

    if (!steps->open || !steps->steps)
        return;
    snprintf(text + used, size - used, ", step %u", steps->steps);
    used = strlen(text);
    if (steps->steps < 2 || !s->simulated_clock)
        return;
    time_format_ns((double)(steps->last_ns - steps->first_ns) /
                       (steps->steps - 1),
                   time, sizeof time);
    snprintf(text + used, size - used, ", a step about %s", time);
}

void live_status_write(const struct session *s, const struct live_steps *steps,
                       uint64_t now_ns, char lines[LIVE_LINES][LIVE_LINE_BYTES])
{
    const struct session_device *d = find_fullest(s);
    uint64_t seconds =
        now_ns > s->start_ns ? (now_ns - s->start_ns) / 1000000000 : 0;
    char verdict[64], capacity[SIZE_LENGTH];

    write_verdict(s, d, verdict, sizeof verdict);
    snprintf(lines[0], LIVE_LINE_BYTES,
             "memsim: %s: %s, %s; %" PRIu64 ":%02" PRIu64, verdict,
             s->gpu.device_name,
             units_format_bytes(s->gpu.memory_bytes, capacity, sizeof capacity),
             seconds / 60, seconds % 60);
    snprintf(lines[1], LIVE_LINE_BYTES, "  ");
    if (!d)
        return;
    write_memory(d, lines[1] + 2, LIVE_LINE_BYTES - 2);
    write_step(s, steps, lines[1], LIVE_LINE_BYTES);
}
