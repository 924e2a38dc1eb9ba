/* SPDX-License-Identifier: Apache-2.0
 * What real ranks of an emulated job send each other, and when they come:
 *
 *   stream    copy to the host | post | kernel waits at the gate | copy back
 *   a thread                        reads what others posted, opens the gate
 *
 * All are on the stream but the thread, so that a graph of streams cannot stop
 * it. Small payloads travel as in `memsim run' (exchange.h). */
#ifndef MEMSIM_CAPTURE_EMULATE_PARCEL_H
#define MEMSIM_CAPTURE_EMULATE_PARCEL_H

#include "capture/nccl/exchange.h"

struct parcel;

/* Whether RANK of C is another process of this run. */
bool parcel_is_real(const struct communicator *c, int rank);

/* Whether any is. */
bool parcel_has_peers(const struct communicator *c);

/* One for calls on STREAM; waits until one is free. NULL where the driver gives
 * no memory for it, or the stream is being captured. */
struct parcel *parcel_open(uint64_t stream);

/* Adds E, with what it sends where it is small. False: P is full. */
bool parcel_add(struct parcel *p, const struct exchange *e);

/* Gives the stream what sends P, then (behind the kernel) what brings what came
 * into the buffers. P is its own from then on. */
void parcel_send(struct parcel *p);
void parcel_bring(struct parcel *p);

/* Where the kernel waits: until *GATE is TICKET. */
struct parcel_gate {
    uint64_t gate, ticket;
};
struct parcel_gate parcel_gate(const struct parcel *p);

#endif
