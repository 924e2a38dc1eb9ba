/* SPDX-License-Identifier: Apache-2.0
 * For host_use.c: what of the host's memory is resident, as /proc says. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_HOST_PAGES_H
#define MEMSIM_CAPTURE_CORE_RUN_HOST_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/ranges.h"
#include "common/trace/session.h"

#define HOST_LARGE (UINT64_C(1) << 20) /* bytes: looked at page by page */

/* Resident bytes of this process; of one that was forked, those that are its
 * own alone. 0: not known. */
uint64_t host_pages_resident(void);
/* The most that the kernel ever saw. */
uint64_t host_pages_peak(void);
/* Resident bytes of RANGES. */
uint64_t host_pages_within(const struct ranges *ranges);
/* Those of memsim itself, whose run is in DIRECTORY; RANGES are the job's. */
uint64_t host_pages_own(const struct ranges *ranges,
                        const char *directory);

/* Whether this process began as a copy of another one. */
bool host_pages_forked(void);
void host_pages_after_fork(void);
/* It counts as if it had not. */
void host_pages_alone(void);

#endif
