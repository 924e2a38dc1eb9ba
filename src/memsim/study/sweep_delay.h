/* SPDX-License-Identifier: Apache-2.0
 * `memsim sweep delay=0..5ms': an axis whose values are delays of calls. The
 * command runs once for all of them; they change its report. */
#ifndef MEMSIM_MEMSIM_STUDY_SWEEP_DELAY_H
#define MEMSIM_MEMSIM_STUDY_SWEEP_DELAY_H

#include <stdint.h>

#include "memsim/run/sweep.h"

#define SWEEP_DELAY "delay" /* the axis's name, and {delay} in --delay */

struct sweep_delay {
    bool given;
    size_t axis;          /* the last one */
    size_t count;         /* of its values; 1: there is none */
    const char *template; /* of --delay, with its {delay}; borrowed */
};

/* Finds the axis in S, which it makes the last one, and writes its ranges as
 * values; *NODES, another axis, moves with the others. COMMAND: where it has
 * {delay}, the axis is one of its own, and no delay. TEMPLATE: of --delay, or
 * NULL. Returns 0, or -1 with ERR set. */
int sweep_delay_find(struct sweep_delay *d, struct sweep *s, size_t *nodes,
                     char *const *command, const char *template,
                     struct err *err);

/* What --delay is in combination AT; NULL: nothing. The caller frees it. */
char *sweep_delay_text(const struct sweep_delay *d, const struct sweep *s,
                       size_t at);

/* The delay of combination AT. */
uint64_t sweep_delay_ns(const struct sweep_delay *d, const struct sweep *s,
                        size_t at);

#endif
