/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/gaps.h"

#include "memsim/attribution/attribute.h"

struct seen {
    bool forward, backward, optimizer, dropped;
    bool forward_after; /* of the first optimizer step */
};

static void phase_see(struct seen *seen, const struct attribution_phase *p)
{
    seen->forward_after |= seen->optimizer && p->phase == TRACE_PHASE_FORWARD;
    seen->forward |= p->phase == TRACE_PHASE_FORWARD;
    seen->backward |= p->phase == TRACE_PHASE_BACKWARD;
    seen->optimizer |= p->phase == TRACE_PHASE_OPTIMIZER;
}

static struct seen device_see(const struct attribution *a)
{
    struct seen seen = {.dropped = a->phases_dropped != 0};

    for (size_t i = 0; i < a->phase_count; i++)
        phase_see(&seen, &a->phases[i]);
    return seen;
}

/* What no GPU of the run saw. */
static struct seen all_see(const struct result *result)
{
    struct seen all = {.forward = false};

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        if (!w.device->attribution)
            continue;
        const struct seen one = device_see(w.device->attribution);
        all.forward |= one.forward;
        all.backward |= one.backward;
        all.optimizer |= one.optimizer;
        all.forward_after |= one.forward_after;
        all.dropped |= one.dropped;
    }
    return all;
}

void gaps_note(struct result *result)
{
    const struct seen seen = all_see(result);

    if (seen.dropped || !seen.forward || result->verdict == VERDICT_OOM ||
        result->verdict == VERDICT_FAILED)
        return;
    if (!seen.backward && !seen.optimizer)
        result_note(result, "the recording has no backward pass: if the job "
                            "trains, it needs more than this");
    else if (!seen.optimizer)
        result_note(result, "the recording has no optimizer step: the "
                            "optimizer's state is not in these figures");
    else if (!seen.forward_after)
        result_note(result, "the recording ends with the first optimizer "
                            "step: later steps have the optimizer's state from "
                            "their begin, and can need more");
    if (seen.optimizer && !result->file_count &&
        result->verdict == VERDICT_FITS)
        result_note(result, "no checkpoint was saved in the recording: to "
                            "gather one can need more memory");
}
