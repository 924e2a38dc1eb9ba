/* SPDX-License-Identifier: Apache-2.0
 * How a process of the run reaches the session where it cannot open it by its
 * path: after su, in a sandbox with another /tmp, or once the directory is
 * removed. It inherits descriptors of the session and of the directory. A
 * process that has lost these too says so by a datagram, whose address needs
 * neither a file nor a right, so that the verdict is not "fits". */
#ifndef MEMSIM_MEMSIM_HANDOVER_H
#define MEMSIM_MEMSIM_HANDOVER_H

#include "common/trace/session_mail.h"
#include "memsim/run/rundir.h"

struct handover {
    int session, directory; /* inherited; they hold no lock; -1: none */
    int mail;               /* what lost processes say arrives here; -1 */
    char value[SESSION_HANDOVER_BYTES]; /* of MEMSIM_SESSION_FD */
};

/* Opens all of them for the own run DIR, as far as that works. */
void handover_open(struct handover *handover, const struct rundir *dir);

/* Closes what the command has inherited. */
void handover_given(struct handover *handover);

/* Adds what lost processes said to the session of DIR, which is collected. */
void handover_collect(const struct handover *handover, struct rundir *dir);

void handover_close(struct handover *handover);

#endif
