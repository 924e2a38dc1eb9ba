/* SPDX-License-Identifier: Apache-2.0
 * This machine's GPUs, as NVIDIA's driver and NVML have them: for `memsim run
 * --real'. They are asked in a process of its own, which ends before the
 * command begins: CUDA does not survive fork(). */
#ifndef MEMSIM_MEMSIM_RUN_REAL_CARDS_H
#define MEMSIM_MEMSIM_RUN_REAL_CARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/trace/session.h"

struct real_card {
    char name[64]; /* as the driver says */
    uint64_t memory_bytes;
    uint64_t used_bytes; /* by others; 0 where NVML does not say */
    uint32_t clock_mhz;  /* of the SMs, now; 0: likewise */
    bool is_mig;         /* an instance of a card that is cut in parts */
    bool is_slowed;      /* it runs slower than it could, for heat or power */
};

struct real_cards {
    uint32_t count;
    int cuda_version;        /* of the driver: 13000 is CUDA 13.0 */
    char driver_version[32]; /* ""; not known */
    bool has_mps;            /* processes share cards through a server */
    struct real_card cards[SESSION_DEVICES];
};

/* Returns 0, or -1 with ERR set: no driver, no GPU. */
int real_cards_find(struct real_cards *cards, struct err *err);

#endif
