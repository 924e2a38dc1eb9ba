/* SPDX-License-Identifier: Apache-2.0
 * The other programs of the run that are or may become ranks of the same job,
 * and whether they still do anything: how long a message is waited for. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_PEERS_H
#define MEMSIM_CAPTURE_CORE_RUN_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "common/trace/session.h"

/* How many other programs may be ranks. They are no ancestors of this one, as a
 * launcher is, unless they use a GPU; and no descendants. */
CORE_API uint32_t memsim_peers_count(void);

/* Processor time that all of them took so far, in milliseconds. */
CORE_API uint64_t memsim_peers_busy_ms(void);

/* Processor time that each of them had taken when this was noted, by place. */
struct peers_note {
    uint64_t ticks[SESSION_LOADED];
};

CORE_API void memsim_peers_note(struct peers_note *note);

/* What the busiest of them took since NOTE, in milliseconds. */
CORE_API uint64_t memsim_peers_busiest_ms(const struct peers_note *note);

/* Whether the process PID has not ended. */
CORE_API bool memsim_peer_lives(uint32_t pid);

/* Processor time that the process PID took, in ticks; 0: it has ended. */
uint64_t memsim_peer_ticks(uint32_t pid);

/* Whether RANK of the world of `memsim run --nnodes' is a process. True where
 * memsim did not start the ranks. */
CORE_API bool memsim_peer_is_real(uint32_t rank);

/* This process enters the list, and leaves it. */
void peers_enter(void);
void peers_leave(void);

#endif
