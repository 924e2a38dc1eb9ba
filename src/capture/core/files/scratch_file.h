/* SPDX-License-Identifier: Apache-2.0
 * The files of scratch.h: making, copying and noting them, by system calls
 * alone. */
#ifndef MEMSIM_CAPTURE_CORE_FILES_SCRATCH_FILE_H
#define MEMSIM_CAPTURE_CORE_FILES_SCRATCH_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/trace/session.h"

bool scratch_file_exists(const char *path);

/* Each returns 0, or -1 with errno set. */

/* Makes the directories above PATH. */
int scratch_file_parents(const char *path);

/* Makes PATH, empty, and the directories above it. */
int scratch_file_make(const char *path, mode_t mode);

/* Replaces what TO, which exists, holds by what FROM does. */
int scratch_file_copy(const char *from, const char *to);

/* Tells the report of PATH, which is about to be written; what is kept once
 * remains so. */
void scratch_file_note(const char *path, enum session_file_kind kind);

#endif
