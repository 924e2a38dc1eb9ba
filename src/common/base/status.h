/* SPDX-License-Identifier: Apache-2.0
 * memsim's exit statuses. Those of `memsim run` follow timeout(1). */
#ifndef MEMSIM_COMMON_BASE_STATUS_H
#define MEMSIM_COMMON_BASE_STATUS_H

enum cmd_status {
    CMD_OK = 0,
    CMD_FAILED = 1, /* not `run` */
    CMD_USAGE = 2,  /* not `run` */
    CMD_RUN_OOM = 120,
    CMD_RUN_OVER_LIMIT = 121,
    CMD_RUN_UNKNOWN = 122, /* a replay of a recording that ends too early */
    CMD_RUN_GROWS = 123, /* memory runs out before the job's last step */
    CMD_RUN_HOST = 124, /* the host's memory does not suffice */
    CMD_RUN_FAILED = 125,
    CMD_RUN_NOT_EXECUTABLE = 126,
    CMD_RUN_NOT_FOUND = 127,
};

#endif
