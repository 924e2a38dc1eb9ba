/* SPDX-License-Identifier: Apache-2.0
 * Times of files, which are this machine's, as the program sees them: where its
 * clock was when the file was written, within a tick of the kernel's. */
#ifndef MEMSIM_CAPTURE_CLOCK_FILES_H
#define MEMSIM_CAPTURE_CLOCK_FILES_H

#include <stdint.h>
#include <sys/stat.h>

/* Under LOCK_RECORD: the user clock is at USER_NS, the host's at HOST_NS. */
void clock_files_put(uint64_t host_ns, uint64_t user_ns);

/* Moves the times of ST, which the kernel has filled. Files from before the
 * first use of the GPU keep theirs, and so do times in the future, to which a
 * program has set them. */
void clock_files_stat(struct stat *st);
void clock_files_statx(struct statx *st);

#endif
