/* SPDX-License-Identifier: Apache-2.0
 * What CUPTI said of a process's GPU work (common/trace/device_log.h), by the
 * call that it is a part of. */
#ifndef MEMSIM_MEMSIM_REAL_DEVICE_LOG_H
#define MEMSIM_MEMSIM_REAL_DEVICE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/trace/device_log.h"

/* A kernel, copy or set. */
struct device_work {
    struct device_log_row row;
    uint64_t number; /* of the call that it is a part of; 0: of none */
    uint64_t before; /* of the last call before it */
    const char *name; /* of a kernel, not terminated: row.text_bytes */
    bool taken;       /* a record has its time */
};

struct device_log {
    struct device_work *works; /* by BEFORE, then by start */
    size_t count;
    uint64_t lost;
    char *bytes;
};

/* Reads the file PATH; without one the log is empty. Returns 0, or -1 with ERR
 * set. */
int device_log_read(struct device_log *log, const char *path, struct err *err);
void device_log_fini(struct device_log *log);

/* The first of the works of the call NUMBER, of which there are *COUNT, one
 * behind the other. */
struct device_work *device_log_of(const struct device_log *log, uint64_t number,
                                  size_t *count);

#endif
