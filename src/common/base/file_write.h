/* SPDX-License-Identifier: Apache-2.0
 * The one way in which our programs write their output files. */
#ifndef MEMSIM_COMMON_BASE_FILE_WRITE_H
#define MEMSIM_COMMON_BASE_FILE_WRITE_H

#include <stddef.h>
#include <stdio.h>

#include "common/base/err.h"

/* Writes the file PATH: calls WRITE once with WHAT and the stream. "-" is
 * standard output. A plain file appears whole or not at all; one that existed
 * keeps its mode, a new one has 0666 less the umask. A device, a FIFO and a
 * symbolic link are written through, never replaced. Returns 0 or -1. */
int file_write(void (*write)(const void *what, FILE *out), const void *what,
               const char *path, struct err *err);

/* The same for LENGTH bytes of TEXT. */
int file_write_text(const char *text, size_t length, const char *path,
                    struct err *err);

/* Refuses OUTPUT, the argument of OPTION, where it is the plain file INPUT by
 * this or another name. Either may be NULL or "-": then it is nothing to
 * refuse. Returns 0 or -1. */
int file_write_check(const char *option, const char *output, const char *input,
                     struct err *err);

#endif
