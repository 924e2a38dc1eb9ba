/* SPDX-License-Identifier: Apache-2.0
 * Growing a file inside another program. Past RLIMIT_FSIZE the kernel sends
 * SIGXFSZ, which would end that program. Between these two calls the thread
 * gets EFBIG and no signal. */
#ifndef MEMSIM_COMMON_BASE_FILE_LIMIT_H
#define MEMSIM_COMMON_BASE_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>

struct file_limit {
    sigset_t mask; /* the thread's before */
    bool pending;  /* a SIGXFSZ was pending before: not ours */
};

void file_limit_enter(struct file_limit *limit);

/* Drops the signal that the thread caused, and keeps errno. */
void file_limit_leave(const struct file_limit *limit);

#endif
