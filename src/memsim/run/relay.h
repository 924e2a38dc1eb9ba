/* SPDX-License-Identifier: Apache-2.0
 * Waits for the command, and forwards signals to it.
 *
 * A signal that is sent to memsim alone is forwarded. A signal that is sent to
 * the process group reaches the command directly: from the terminal (Ctrl-C),
 * timeout(1), a shell's `kill %1', a batch system. The kernel does not tell
 * which of the two it was. So a small process of the same group, the witness,
 * waits for signals: a signal that it gets too was sent to the group. */
#ifndef MEMSIM_MEMSIM_RUN_RELAY_H
#define MEMSIM_MEMSIM_RUN_RELAY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct relay {
    struct witness *seen; /* shared with the witness; NULL: there is none */
    pid_t witness;
    bool late; /* the command's time was over */
};

/* Starts the witness. All signals must be blocked; MASK is what the process
 * blocked before. If there is no memory or no process for a witness, every
 * signal from a process is forwarded. */
void relay_start(struct relay *relay, const sigset_t *mask);

/* Waits for CHILD, with all signals still blocked, and forwards signals. After
 * LIMIT_S seconds (0: never) its process group, which must be its own then, is
 * ended by SIGTERM, and 10 s later by SIGKILL. Afterwards the signals that this
 * function waits for are blocked. Returns the status of waitpid(2) for CHILD,
 * or -1. */
int relay_wait(struct relay *relay, pid_t child, uint32_t limit_s,
               const sigset_t *mask);

/* Ends the witness. */
void relay_stop(struct relay *relay);

/* The signals that are passed on. */
sigset_t relay_signals(void);

/* The last signal received while a command ran; 0: none. */
int relay_signal(void);

/* Another, received while several ran (workers.h). */
void relay_received(int signal);

#endif
