/* SPDX-License-Identifier: Apache-2.0
 * Opening a plain file to read it. */
#ifndef MEMSIM_COMMON_BASE_FILE_OPEN_H
#define MEMSIM_COMMON_BASE_FILE_OPEN_H

#include "common/base/err.h"

/* Opens PATH to read; the descriptor is closed on exec. Refuses what is no
 * plain file without waiting for it: opening a FIFO that nobody writes to would
 * wait for ever. Returns -1 with ERR set on failure. */
int file_open(const char *path, struct err *err);

#endif
