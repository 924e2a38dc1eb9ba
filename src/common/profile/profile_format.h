/* SPDX-License-Identifier: Apache-2.0
 * The formats of profiles, as a table: doc/HOWTO-add-importer.md. */
#ifndef MEMSIM_COMMON_PROFILE_PROFILE_FORMAT_H
#define MEMSIM_COMMON_PROFILE_PROFILE_FORMAT_H

#include "common/profile/kineto_read.h"

struct profile_format {
    /* Is the file PATH of this format? NULL, in the last row: any that is of no
     * other. */
    bool (*is)(const char *path);
    /* Sets *COUNT to the processes in PATH, at least one. NULL: always one.
     * Returns 0 or -1. */
    int (*processes)(const char *path, uint32_t *count, struct err *err);
    /* Reads the events of the NTH process. As kineto_read. */
    int (*read)(const char *path, uint32_t nth, kineto_take *take,
                void *context, struct kineto_info *info, struct err *err);
};

/* That of PATH. */
const struct profile_format *profile_format_of(const char *path);

#endif
