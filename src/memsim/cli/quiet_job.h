/* SPDX-License-Identifier: Apache-2.0
 * A job whose output nobody sees unless it fails: those of `memsim fit-batch'
 * and `memsim sweep'. */
#ifndef MEMSIM_MEMSIM_CLI_QUIET_JOB_H
#define MEMSIM_MEMSIM_CLI_QUIET_JOB_H

#include "common/base/err.h"

/* Prints the end of what is in the file FD to stderr. */
void quiet_show(int fd);

/* Inside a run the cards are those of the outer one: COMMAND cannot be started
 * there. Returns 0, or -1 with ERR set. */
int quiet_check_outer(const char *command, struct err *err);

#endif
