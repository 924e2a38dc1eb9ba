/* SPDX-License-Identifier: Apache-2.0
 * Work that needs data from another process first: a collective among ranks. It
 * is submitted to a stream. Later work on the device waits for it, also through
 * events. The host continues, as with a real device.
 *
 * The host waits in two cases. It synchronizes with the stream: then it would
 * wait on a real device, too. Or it gives the stream work that is carried out
 * here at once and may read the result. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_AWAIT_H
#define MEMSIM_CAPTURE_CORE_WORK_AWAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"

#define AWAIT_MAX   64 /* at once; a bit of a mask each */
#define AWAIT_BYTES 192

/* DATA is a copy of what memsim_await was given. */
struct await_kind {
    /* Writes the result if all of it is there. UNWANTED: the memory for it has
     * another use by now. OVER: what is missing does not come any more. */
    bool (*complete)(void *data, bool unwanted, bool over);

    /* Waits for what is missing, MS milliseconds at most. No lock is held. */
    void (*sleep)(void *data, unsigned ms);

    /* Whether nothing will come any more, after WAITED_MS in vain; PLACE is
     * the program's line. No lock is held. It may keep something in DATA from
     * one call to the next. */
    bool (*give_up)(void *data, uint64_t waited_ms, const char *place);
};

/* What a stream or an event waits for: works, by a bit each, of those that were
 * begun up to the AT-th. */
struct await_mask {
    uint64_t bits, at;
};

/* What of MASK is under way; and BITS, which are, come to it. */
uint64_t await_bits(const struct await_mask *mask);
void await_add(struct await_mask *mask, uint64_t bits);

/* Completes KIND's work if it is not to come LATER. Returns 0, or the bit of
 * the work, which the stream waits for from now on (stream.h). DATA, of COUNT
 * bytes, is copied; it is about BYTES at ADDRESS. */
CORE_API uint64_t memsim_await(const struct await_kind *kind, const void *data,
                               size_t count, uint64_t address, uint64_t bytes,
                               bool later);

/* Completes what can be completed. */
CORE_API void memsim_await_poll(void);

/* The work under way that reads or writes BYTES at ADDRESS is waited for. */
CORE_API void memsim_await_memory(uint64_t address, uint64_t bytes);

/* Bits of the work under way. */
extern _Atomic uint64_t await_live;

static inline bool await_any(void)
{
    return atomic_load_explicit(&await_live, memory_order_relaxed);
}

/* Waits for MASK. */
void await_reach(uint64_t mask);

/* True where nothing of MASK is under way any more, without waiting. */
bool await_is_done(uint64_t mask);

#endif
