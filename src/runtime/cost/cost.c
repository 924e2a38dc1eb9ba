/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost.h"

#include <math.h>

/* Half of a roofline's errors are within about this factor. */
#define ROOFLINE_BAND 1.5
#define FALLBACK_BAND 3.0

/* The longest time that is believed: a day. */
#define MAX_NS 86400e9

static uint64_t whole_ns(double ns)
{
    if (!(ns > 0))
        return 0;
    return (uint64_t)(ns < MAX_NS ? ns + 0.5 : MAX_NS);
}

static void price_roofline(const struct cost_gpu *gpu, const struct work *work,
                           struct cost_answer *answer)
{
    double ns = cost_roofline_ns(
        cost_roofline_default(work->family, work->type), gpu, work);
    bool known = work->source == WORK_EXACT || work->source == WORK_RULE;
    double band = known ? ROOFLINE_BAND : FALLBACK_BAND;

    *answer = (struct cost_answer){
        .ns = whole_ns(ns),
        .low_ns = whole_ns(ns / band),
        .high_ns = whole_ns(ns * band),
        .basis = known ? COST_ROOFLINE : COST_FALLBACK,
    };
}

static uint64_t at_least(uint64_t ns, uint64_t bound)
{
    return ns < bound ? bound : ns;
}

void cost_price(const struct cost_image *image, const struct cost_gpu *gpu,
                const struct work *work, struct cost_answer *answer)
{
    uint64_t bound = whole_ns(cost_bound_ns(gpu, work));

    (void)image;
    if (work->family == WORK_NOTHING) {
        *answer = (struct cost_answer){.basis = COST_MEASURED};
        return;
    }
    price_roofline(gpu, work, answer);
    answer->ns = at_least(answer->ns, bound);
    answer->low_ns = at_least(answer->low_ns, bound);
    answer->high_ns = at_least(answer->high_ns, answer->ns);
}
