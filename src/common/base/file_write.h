/* SPDX-License-Identifier: Apache-2.0
 * A file that appears whole or not at all. */
#ifndef MEMSIM_COMMON_FILE_WRITE_H
#define MEMSIM_COMMON_FILE_WRITE_H

#include <stdio.h>

#include "common/base/err.h"

/* Calls WRITE once with WHAT and a stream, and makes what it writes the file
 * PATH; "-" is stdout. A file that exists keeps its mode; a new one is
 * readable by its owner only. Returns 0, or -1 with PATH as it was. */
int file_write(void (*write)(const void *what, FILE *out), const void *what,
               const char *path, struct err *err);

#endif
