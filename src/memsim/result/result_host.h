/* SPDX-License-Identifier: Apache-2.0
 * What a job takes of the host's memory: of each process, and of a node. */
#ifndef MEMSIM_MEMSIM_RESULT_RESULT_HOST_H
#define MEMSIM_MEMSIM_RESULT_RESULT_HOST_H

#include "memsim/result/result.h"

/* Fills R->hosts from S, sums up the ranks of a node, and judges by
 * --host-memory. R's ranks have their members. */
void result_hosts_fill(struct result *r, const struct session *s);

/* Whether R knows anything of it. */
bool result_has_hosts(const struct result *r);

/* Whether anything grows from step to step. */
bool result_host_grows(const struct result *r);

/* The bytes of KIND at most, of all processes that were run. */
uint64_t result_hosts_high(const struct result *r, enum session_host_kind kind);

#endif
