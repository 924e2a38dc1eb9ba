/* SPDX-License-Identifier: Apache-2.0
 * Reads what `memsim run --json` wrote back into a result: the verdict, the
 * figures of every rank and GPU, and of the attribution what there was at the
 * peak, by category and by module. Nothing in the file is trusted. */
#ifndef MEMSIM_MEMSIM_REPORT_JSON_RESULT_READ_H
#define MEMSIM_MEMSIM_REPORT_JSON_RESULT_READ_H

#include <stddef.h>

#include "common/base/err.h"
#include "memsim/result/result.h"

/* A result with its command, which struct result only borrows. */
struct result_file {
    struct result result;
    char **command; /* NULL-terminated */
};

/* Parses LENGTH bytes of JSON; ORIGIN stands for the file in messages. Returns
 * 0 with *FILE to be given to result_file_fini, or -1 with nothing to free. */
int result_read(const char *json, size_t length, const char *origin,
                struct result_file *file, struct err *err);
void result_file_fini(struct result_file *file);

#endif
