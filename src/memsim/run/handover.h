/* SPDX-License-Identifier: Apache-2.0
 * How a process of the run reaches the session if it cannot open it by its
 * path: after su, in a sandbox with another /tmp, or after the directory was
 * removed. It inherits descriptors of the session and of the directory. A
 * process without these sends a datagram, so that the verdict is not "fits".
 * The datagram's address needs no file and no permission. */
#ifndef MEMSIM_MEMSIM_RUN_HANDOVER_H
#define MEMSIM_MEMSIM_RUN_HANDOVER_H

#include "common/trace/session_mail.h"
#include "memsim/run/rundir.h"

struct handover {
    int session, directory; /* inherited; they hold no lock; -1: none */
    int mail;               /* receives lost processes' datagrams; or -1 */
    char secret[SESSION_SECRET_BYTES + 1]; /* a datagram begins with it */
    char value[SESSION_HANDOVER_BYTES];    /* of MEMSIM_SESSION_FD */
};

/* Opens all of them that can be opened, for this process's run DIR. */
void handover_open(struct handover *handover, const struct rundir *dir);

/* Closes the descriptors that the command has inherited. */
void handover_given(struct handover *handover);

/* Adds the lost processes' datagrams to the collected session of DIR. */
void handover_collect(const struct handover *handover, struct rundir *dir);

void handover_close(struct handover *handover);

#endif
