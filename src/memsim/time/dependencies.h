/* SPDX-License-Identifier: Apache-2.0
 * What an operation waited for, and what waited for it: the four kinds of
 * dependency, as the simulation followed them. */
#ifndef MEMSIM_MEMSIM_TIME_DEPENDENCIES_H
#define MEMSIM_MEMSIM_TIME_DEPENDENCIES_H

#include <stdio.h>

#include "memsim/time/time_log.h"

/* Prints the dependencies of the operations of LOG whose name, module, operator
 * or number (as "#17") is WANTED or has it in it, MOST of them at most, to OUT.
 * Returns how many there are. */
size_t dependencies_print(const struct time_log *log, const char *wanted,
                          size_t most, FILE *out);

#endif
