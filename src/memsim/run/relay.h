/* SPDX-License-Identifier: Apache-2.0
 * Waiting for the command, and passing signals on to it.
 *
 * A signal that somebody sends to memsim alone is passed on. One that is sent
 * to the process group reaches the command without us: by the terminal
 * (Ctrl-C), timeout(1), a shell's `kill %1', a batch system. The kernel does
 * not say which of the two it was, so a small process of the same group, the
 * witness, waits for signals: what it gets as well was sent to the group. */
#ifndef MEMSIM_MEMSIM_RELAY_H
#define MEMSIM_MEMSIM_RELAY_H

#include <signal.h>
#include <sys/types.h>

struct relay {
    struct witness *seen; /* shared with the witness; NULL: there is none */
    pid_t witness;
};

/* Starts the witness. All signals must be blocked; MASK is what the process
 * blocked before. Without memory or processes there is no witness, and every
 * signal of a process is passed on. */
void relay_start(struct relay *relay, const sigset_t *mask);

/* Waits for CHILD, with all signals still blocked, and passes on what comes.
 * Afterwards what this function waits for is blocked. Returns what waitpid(2)
 * says of CHILD, or -1. */
int relay_wait(struct relay *relay, pid_t child, const sigset_t *mask);

/* Ends the witness. */
void relay_stop(struct relay *relay);

/* The last signal that came while a command ran; 0: none. */
int relay_signal(void);

#endif
