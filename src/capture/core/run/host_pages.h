/* SPDX-License-Identifier: Apache-2.0
 * For host_use.c: tables of ranges of the host's memory, and what of it is
 * resident, as /proc says. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_HOST_PAGES_H
#define MEMSIM_CAPTURE_CORE_RUN_HOST_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/session.h"

#define HOST_LARGE (UINT64_C(1) << 20) /* bytes: looked at page by page */

struct host_range_used {
    uint64_t address, bytes;
    enum session_host_kind kind;
};

/* Ranges by address: open addressing, at most half full. */
struct host_ranges {
    uint64_t places; /* a power of two */
    uint64_t count;
    struct host_range_used *all; /* bytes 0: free */
};

/* False: there is no room, or the address is there already. */
bool host_ranges_add(struct host_ranges *ranges,
                     const struct host_range_used *range);
/* Sets *OLD; false: it is not there. */
bool host_ranges_remove(struct host_ranges *ranges, uint64_t address,
                        struct host_range_used *old);
void host_ranges_clear(struct host_ranges *ranges);

/* Resident bytes of this process; of one that was forked, those that are its
 * own alone. 0: not known. */
uint64_t host_pages_resident(void);
/* The most that the kernel ever saw. */
uint64_t host_pages_peak(void);
/* Resident bytes of RANGES. */
uint64_t host_pages_within(const struct host_ranges *ranges);
/* Those of memsim itself, whose run is in DIRECTORY; RANGES are the job's. */
uint64_t host_pages_own(const struct host_ranges *ranges,
                        const char *directory);

/* Whether this process began as a copy of another one. */
bool host_pages_forked(void);
void host_pages_after_fork(void);
/* It counts as if it had not. */
void host_pages_alone(void);

#endif
