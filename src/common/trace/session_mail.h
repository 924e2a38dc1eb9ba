/* SPDX-License-Identifier: Apache-2.0
 * The value of MEMSIM_SESSION_FD, "SESSION,DIRECTORY,TOKEN,SECRET": two
 * inherited descriptors; the name under which `memsim run` receives datagrams,
 * which every user of the machine can read; and what a datagram has to begin
 * with, which only processes of the run know. Used inside the observed program:
 * no heap, no stdio. */
#ifndef MEMSIM_COMMON_TRACE_SESSION_MAIL_H
#define MEMSIM_COMMON_TRACE_SESSION_MAIL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SESSION_HANDOVER       "MEMSIM_SESSION_FD"
#define SESSION_HANDOVER_BYTES 96
#define SESSION_SECRET_BYTES   32 /* hexadecimal digits */

struct session_handover {
    int session, directory; /* -1: none */
    char token[20];         /* "": none */
    char secret[SESSION_SECRET_BYTES + 1];
};

/* Reads TEXT, which may be NULL. */
void session_handover_read(struct session_handover *handover, const char *text);

/* Makes the abstract address of TOKEN; returns its length. */
socklen_t session_mail_address(const char *token, struct sockaddr_un *address);

/* Sends TEXT to the run that handed over HANDOVER, if it can be reached. */
void session_mail_send(const struct session_handover *handover,
                       const char *text, size_t bytes);

#endif
