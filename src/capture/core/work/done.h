/* SPDX-License-Identifier: Apache-2.0
 * When the work that was given to a device is done. Without a model of time
 * it is done at once. A model hears of all work (submit.h) and says when each
 * stream will have done it, on the clock of clock.h. */
#ifndef MEMSIM_CAPTURE_DONE_H
#define MEMSIM_CAPTURE_DONE_H

#include <stdbool.h>
#include <stdint.h>

#define DONE_AT_ONCE UINT64_C(0)

struct op;

/* Called from any thread; submit() with no lock of the core's held. Times in
 * nanoseconds of clock_now(). DEVICE is the process's own numbering, STREAM
 * and EVENT are handles as the program knows them. */
struct done_model {
    void (*submit)(const struct op *op); /* OP is valid during the call */
    uint64_t (*stream_done_at)(int device, uint64_t stream);
    uint64_t (*device_done_at)(int device);
    uint64_t (*event_done_at)(uint64_t event); /* its last record */
};

/* NULL: no model. Set it before the process's first work. */
extern const struct done_model *done_model;

/* When all that STREAM, or DEVICE, was given so far is done. */
uint64_t stream_done_at(int device, uint64_t stream);
uint64_t device_done_at(int device);

/* When the work before EVENT's last record, at RECORDED_NS, was done. */
uint64_t event_done_at(uint64_t event, uint64_t recorded_ns);

/* Whether what is done AT_NS is done now. */
bool done_by_now(uint64_t at_ns);

#endif
