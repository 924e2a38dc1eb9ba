/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/done.h"

#include "capture/core/run/clock.h"

const struct done_model *done_model;

uint64_t stream_done_at(int device, uint64_t stream)
{
    return done_model ? done_model->stream_done_at(device, stream)
                      : DONE_AT_ONCE;
}

uint64_t device_done_at(int device)
{
    return done_model ? done_model->device_done_at(device) : DONE_AT_ONCE;
}

uint64_t event_done_at(uint64_t event, uint64_t recorded_ns)
{
    return done_model ? done_model->event_done_at(event) : recorded_ns;
}

bool done_by_now(uint64_t at_ns)
{
    return at_ns == DONE_AT_ONCE || at_ns <= clock_now();
}
