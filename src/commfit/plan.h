/* SPDX-License-Identifier: Apache-2.0
 * Which nccl-tests runs are worth their time. */
#ifndef MEMSIM_COMMFIT_PLAN_H
#define MEMSIM_COMMFIT_PLAN_H

#include <stdio.h>

/* Prints the commands, with the reason for each. */
void plan_print(FILE *out);

#endif
