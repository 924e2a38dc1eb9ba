/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/files/entries.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void entries_begin(struct entries *e, int fd, bool first_only)
{
    e->fd = fd;
    e->first_only = first_only;
    e->count = syscall(SYS_getdents64, fd, e->bytes, sizeof e->bytes);
    e->at = 0;
}

const struct entry *entries_next(struct entries *e)
{
    for (;;) {
        if (e->at >= e->count && !e->first_only) {
            e->count =
                syscall(SYS_getdents64, e->fd, e->bytes, sizeof e->bytes);
            e->at = 0;
        }
        if (e->at >= e->count)
            return NULL;
        const struct entry *found = (const struct entry *)(e->bytes + e->at);
        e->at += found->bytes;
        if (strcmp(found->name, ".") && strcmp(found->name, ".."))
            return found;
    }
}
