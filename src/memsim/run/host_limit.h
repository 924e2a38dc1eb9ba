/* SPDX-License-Identifier: Apache-2.0
 * What this machine allows of its memory. */
#ifndef MEMSIM_MEMSIM_RUN_HOST_LIMIT_H
#define MEMSIM_MEMSIM_RUN_HOST_LIMIT_H

#include <stdint.h>

#include "common/base/err.h"

/* The lowest limit of memory of this process's control group (version 1 or 2)
 * and of those above it. Returns 0, or -1 where there is none. */
int host_limit_cgroup(uint64_t *bytes, struct err *err);

/* The same of the group GROUP, "/a/b", whose files lie below ROOT; FILE is the
 * limit's name. UINT64_MAX: none is set. */
uint64_t host_limit_of(const char *root, const char *group, const char *file);

/* Used bytes of /dev/shm; 0: there is none. */
uint64_t host_shared_used(void);

#endif
