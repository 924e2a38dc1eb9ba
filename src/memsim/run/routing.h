/* SPDX-License-Identifier: Apache-2.0
 * --routing: what a router of experts chooses where memsim does not know it. */
#ifndef MEMSIM_MEMSIM_RUN_ROUTING_H
#define MEMSIM_MEMSIM_RUN_ROUTING_H

#include "common/base/err.h"

/* Reads TEXT, "even", "zipf[:S]", "power:A" or the name of a file of shares,
 * into *VALUE, for capture/core/compute/routing.c, which the caller frees.
 * Returns 0, or -1 with ERR set. */
int routing_parse(const char *text, char **value, struct err *err);

#endif
