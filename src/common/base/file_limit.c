/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/file_limit.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static sigset_t set_of_xfsz(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

void file_limit_enter(struct file_limit *limit)
{
    const sigset_t set = set_of_xfsz();
    sigset_t pending;

    pthread_sigmask(SIG_BLOCK, &set, &limit->mask);
    limit->pending =
        !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
}

void file_limit_leave(const struct file_limit *limit)
{
    const sigset_t set = set_of_xfsz();
    const struct timespec at_once = {0};
    int saved = errno;

    while (!limit->pending && sigtimedwait(&set, NULL, &at_once) < 0 &&
           errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &limit->mask, NULL);
    errno = saved;
}
