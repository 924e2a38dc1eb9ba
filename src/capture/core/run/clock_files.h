/* SPDX-License-Identifier: Apache-2.0
 * Times of files, which are this machine's, as the program sees them: where its
 * clock was when the file was written, within a tick of the kernel's. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_CLOCK_FILES_H
#define MEMSIM_CAPTURE_CORE_RUN_CLOCK_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Under LOCK_RECORD: what is known, and from when on it is to be kept. */
struct clock_moment {
    uint64_t host_ns, user_ns;
};
extern struct clock_moment clock_files_latest;
extern uint64_t clock_files_next_ns;
void clock_files_keep(void);

/* Likewise: the user clock is at USER_NS, the host's at HOST_NS. */
static inline void clock_files_put(uint64_t host_ns, uint64_t user_ns)
{
    clock_files_latest = (struct clock_moment){host_ns, user_ns};
    if (__builtin_expect(host_ns >= clock_files_next_ns, false))
        clock_files_keep();
}

/* Moves the times of ST, which the kernel has filled. Files from before the
 * first use of the GPU keep theirs, and so do times in the future, to which a
 * program has set them. */
void clock_files_stat(struct stat *st);
void clock_files_statx(struct statx *st);

#endif
