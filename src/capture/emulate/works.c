/* SPDX-License-Identifier: Apache-2.0
 * What --delay does to the work of an emulated rank's GPU: a kernel on the same
 * stream, behind each that it is about, holds up what follows. Where that is a
 * factor, a kernel before it notes the time (ptx.h). */
#include <cuda.h>
#include <stdatomic.h>

#include "capture/core/run/record.h"
#include "capture/emulate/kernel.h"
#include "capture/emulate/price.h"
#include "capture/real/card.h"
#include "capture/real/real.h"

#define PARTS 1e6 /* of a factor */

/* This thread's call: the work that it gave, and its stamp. */
static _Thread_local struct {
    bool own; /* the call is memsim's */
    bool some;
    uint32_t name;
    uint64_t stream, stamp;
} work;

static void delay_give(uint64_t stream, uint64_t ns, uint64_t parts)
{
    const struct emulated_delay d = {.stream = stream,
                                     .ns = ns + !ns,
                                     .parts = parts,
                                     .stamp = work.stamp};

    work.own = true;
    kernel_delay(card_current(), &d);
    work.own = false;
}

static void work_before(uint64_t stream)
{
    static _Atomic uint64_t stamps;

    if (work.own || card_current() < 0 || !emulated_price_longer())
        return;
    work.stamp = atomic_fetch_add(&stamps, 1) + 1;
    delay_give(stream, 0, 0);
}

static void work_told(uint32_t name, uint64_t stream)
{
    if (work.own)
        return;
    work.some = true;
    work.name = name;
    work.stream = stream;
}

static void work_after(void)
{
    if (work.own || !work.some)
        return;
    work.some = false;
    struct delay_effect effect = emulated_price_work(record_name(work.name));
    double longer = effect.factor > 1 && work.stamp ? effect.factor - 1 : 0;
    if (effect.late_ns || longer > 0)
        delay_give(work.stream, effect.late_ns, (uint64_t)(longer * PARTS));
    work.stamp = 0;
}

__attribute__((constructor)) static void works_watch(void)
{
    static const struct real_works works = {.before = work_before,
                                            .told = work_told,
                                            .after = work_after};

    real_works = &works;
}
