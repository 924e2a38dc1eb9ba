/* SPDX-License-Identifier: Apache-2.0
 * The steps of an emulated job, which --delay needs: counted as the records of
 * phases are written. Where a step begins, what --delay does to the host is
 * done in the first call of CUDA's behind it. Captured work makes no step. */
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "capture/core/run/live.h"
#include "capture/core/run/process.h"
#include "capture/emulate/price.h"
#include "capture/real/real.h"
#include "common/trace/step.h"
#include "common/trace/trace_write.h"

#define NS_PER_S 1000000000

static struct step_counter counter; /* under LOCK_RECORD, as the next three */
static struct step_marks marks;
static unsigned unmarked; /* steps that began before the first mark */
static bool capturing;
static _Atomic uint32_t begun; /* steps */
static _Atomic uint32_t acted; /* for so many of them */

static void take_phase(uint64_t phase)
{
    if (!capturing && step_counter_phase(&counter, phase) && !marks.begun)
        atomic_store(&begun, counter.step + 1);
}

static void take_mark(const struct trace_item *item)
{
    if (step_marks_take(&marks, item) != STEP_MARK_BEGINS)
        return;
    if (marks.begun == 1 && counter.begun)
        unmarked = counter.step + 1;
    atomic_store(&begun, unmarked + marks.begun);
}

/* Under LOCK_RECORD. */
static void on_record(const struct trace_put *r)
{
    switch (r->kind) {
    case TRACE_PHASE:
        take_phase(r->fields[0]);
        break;
    case TRACE_CAPTURE_JOIN:
    case TRACE_CAPTURE_END:
        capturing = r->kind == TRACE_CAPTURE_JOIN;
        break;
    case TRACE_RANGE_PUSH:
    case TRACE_RANGE_POP:
        take_mark(&(struct trace_item){
            .head = {.kind = (uint16_t)r->kind,
                     .thread = r->thread,
                     .text_bytes = (uint32_t)r->text_bytes},
            .fields = r->fields,
            .text = r->text});
        break;
    default:
        break;
    }
}

static void die_at_step(uint32_t rank, uint32_t step)
{
    memsim_note("--delay die=%u: rank %u dies as step %u begins; the process "
                "of rank %u%s is killed",
                step, rank, step, process_rank(),
                rank == process_rank() ? "" : ", which stands for it,");
    kill(getpid(), SIGKILL);
}

static void step_begins(uint32_t step)
{
    struct emulated_step s;

    emulated_price_step(step, &s);
    if (s.dead != DELAY_ANY)
        die_at_step(s.dead, step);
    struct timespec left = {.tv_sec = (time_t)(s.sleep_ns / NS_PER_S),
                            .tv_nsec = (long)(s.sleep_ns % NS_PER_S)};
    while (s.sleep_ns && nanosleep(&left, &left))
        ;
}

/* Before each call of CUDA's: with no lock of the core's held. */
static void before_call(void)
{
    uint32_t done = atomic_load_explicit(&acted, memory_order_relaxed);

    if (__builtin_expect(done != atomic_load(&begun), 0) &&
        atomic_compare_exchange_strong(&acted, &done, atomic_load(&begun)))
        step_begins(acted - 1);
}

__attribute__((constructor)) static void steps_watch(void)
{
    live_watch = on_record;
    real_before = before_call;
}
