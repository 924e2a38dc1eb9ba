/* SPDX-License-Identifier: Apache-2.0
 * How many operations a second the stream simulator does: one stream, as most
 * programs use; four streams with events between them; and hosts that wait. See
 * bench/sim_speed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/sim/sim.h"

#define OPS 3000000

static void *grow(void *context, void *old, size_t old_bytes, size_t bytes)
{
    (void)context;
    char *p = realloc(old, bytes ? bytes : 1);

    if (bytes > old_bytes)
        memset(p + old_bytes, 0, bytes - old_bytes);
    return p;
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t ended;

static void take(void *context, const struct sim_done *done)
{
    (void)context;
    ended += done->end_ns & 1;
}

static void run(const char *name, uint32_t streams, unsigned sync_every)
{
    const struct sim_memory memory = {.grow = grow};
    const struct sim_sink sink = {.done = take};
    const struct sim_gpu gpu = {.queue_depth = 1024, .comm_takes = 11000};
    struct sim *s = sim_create(&memory, &sink);
    uint32_t device = sim_device(s, &gpu), thread = sim_thread(s);
    uint32_t events[4];

    for (uint32_t i = 0; i < streams; i++) {
        sim_stream(s, device, SIM_NON_BLOCKING, 0);
        events[i] = sim_event(s);
    }
    double start = now_s();
    for (unsigned i = 1; i <= OPS; i++) {
        uint32_t stream = i % streams;
        struct sim_work work = {.engine = stream == 3 ? SIM_COMM : SIM_COMPUTE,
                                .duration_ns = 4000 + i % 3000,
                                .gap_ns = 1000,
                                .meet = SIM_NONE,
                                .tag = i};
        sim_spend(s, thread, 3000);
        sim_submit(s, thread, stream, &work);
        if (streams > 1 && i % 16 == 0) {
            sim_record(s, thread, stream, events[stream]);
            sim_wait_event(s, thread, (stream + 1) % streams, events[stream]);
        }
        if (sync_every && i % sync_every == 0)
            sim_sync_stream(s, thread, stream);
        if (sim_waits(s, thread))
            sim_settle(s, thread);
    }
    sim_drain(s);
    double seconds = now_s() - start;
    printf("%-28s %6.2f million operations a second, %5.0f ns each\n", name,
           OPS / seconds / 1e6, 1e9 * seconds / OPS);
}

int main(void)
{
    run("one stream", 1, 0);
    run("one stream, host waits", 1, 100);
    run("four streams with events", 4, 1000);
    return ended == 0;
}
