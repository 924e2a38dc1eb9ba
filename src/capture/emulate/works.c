/* SPDX-License-Identifier: Apache-2.0
 * What --delay does to the work of an emulated rank's GPU: a kernel on the same
 * stream, before each that it is about, holds it up. Where it takes longer by a
 * factor, that kernel notes the time when it ends, and one behind the work
 * waits for a part of what has passed since (ptx.h). */
#include <cuda.h>
#include <math.h>
#include <stdatomic.h>

#include "capture/core/run/record.h"
#include "capture/emulate/kernel.h"
#include "capture/emulate/price.h"
#include "capture/real/card.h"
#include "capture/real/real.h"

#define PARTS 1e6 /* of a factor */

/* This thread's call. */
static _Thread_local struct {
    bool own;       /* it is memsim's */
    uint64_t parts; /* by which what it gives is longer; 0: it is not */
    uint64_t stream, stamp;
} work;

static void delay_give(uint64_t stream, uint64_t ns, uint64_t parts,
                       uint64_t stamp)
{
    const struct emulated_delay d = {
        .stream = stream, .ns = ns + !ns, .parts = parts, .stamp = stamp};

    work.own = true;
    kernel_delay(card_current(), &d);
    work.own = false;
}

static void work_before(uint32_t name, uint64_t stream)
{
    static _Atomic uint64_t stamps;

    if (work.own || !name || card_current() < 0)
        return;
    struct delay_effect effect = emulated_price_work(record_name(name));
    work.parts = (uint64_t)llround((effect.factor - 1) * PARTS);
    work.stream = stream;
    work.stamp = work.parts ? atomic_fetch_add(&stamps, 1) + 1 : 0;
    if (effect.late_ns || work.parts)
        delay_give(stream, effect.late_ns, 0, work.stamp);
}

static void work_after(void)
{
    uint64_t parts = work.parts;

    if (work.own || !parts)
        return;
    work.parts = 0;
    delay_give(work.stream, 0, parts, work.stamp);
}

__attribute__((constructor)) static void works_watch(void)
{
    static const struct real_works works = {.before = work_before,
                                            .after = work_after};

    real_works = &works;
}
