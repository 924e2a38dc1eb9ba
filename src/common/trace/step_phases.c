/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/step_phases.h"

#include "common/base/xmalloc.h"

/* What a stream capture recorded. */
struct step_captured {
    uint64_t capture;
    bool forward, optimizer;
    bool calls; /* of modules */
    struct step_batch batch;
};

static struct step_captured *last_captured(struct step_phases *p)
{
    return &p->captured[p->count - 1];
}

/* Several streams may join one capture. */
static void take_capture(struct step_phases *p, uint64_t capture)
{
    if (p->capturing && last_captured(p)->capture == capture)
        return;
    xgrow(&p->captured, p->count, &p->capacity, sizeof *p->captured);
    p->captured[p->count++] = (struct step_captured){.capture = capture};
    p->capturing = true;
}

static void take_capture_end(struct step_phases *p, uint64_t capture)
{
    if (p->capturing && last_captured(p)->capture == capture)
        p->capturing = false;
}

static void carry_phase(struct step_carried *c, uint64_t phase)
{
    c->phases[c->count++] = phase;
}

static struct step_carried take_phase(struct step_phases *p, uint64_t phase)
{
    struct step_carried carried = {.count = 0};

    if (!p->capturing) {
        carry_phase(&carried, phase);
        return carried;
    }
    struct step_captured *c = last_captured(p);
    c->forward = c->forward || phase == TRACE_PHASE_FORWARD;
    c->optimizer = c->optimizer || phase == TRACE_PHASE_OPTIMIZER;
    return carried;
}

static struct step_carried take_launch(const struct step_phases *p,
                                       uint64_t capture)
{
    struct step_carried carried = {.count = 0};

    for (size_t i = p->count; i--;) {
        const struct step_captured *c = &p->captured[i];
        if (c->capture != capture)
            continue;
        if (c->forward)
            carry_phase(&carried, TRACE_PHASE_FORWARD);
        if (c->optimizer) {
            carry_phase(&carried, TRACE_PHASE_OPTIMIZER);
            carry_phase(&carried, TRACE_PHASE_OTHER);
        }
        carried.batch = &c->batch;
        carried.calls = c->calls;
        break;
    }
    return carried;
}

struct step_carried step_phases_take(struct step_phases *p,
                                     const struct trace_item *item)
{
    const struct step_carried nothing = {.count = 0};

    switch (item->head.kind) {
    case TRACE_PHASE:
        return take_phase(p, trace_as_phase(item)->phase);
    case TRACE_CAPTURE_JOIN:
        take_capture(p, trace_as_capture_join(item)->capture);
        return nothing;
    case TRACE_CAPTURE_END:
        take_capture_end(p, trace_as_capture_end(item)->capture);
        return nothing;
    case TRACE_GRAPH_LAUNCH:
        return take_launch(p, trace_as_graph_launch(item)->capture);
    case TRACE_MODULE_ENTER:
        if (p->capturing)
            last_captured(p)->calls = true;
        return nothing;
    case TRACE_BATCH:
        if (p->capturing)
            step_batch_add(&last_captured(p)->batch, trace_as_batch(item));
        return nothing;
    default:
        return nothing;
    }
}

void step_phases_fini(struct step_phases *p)
{
    xfree(p->captured);
    *p = (struct step_phases){.count = 0};
}
