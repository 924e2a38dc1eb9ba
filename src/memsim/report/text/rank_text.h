/* SPDX-License-Identifier: Apache-2.0
 * How reports name ranks. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_RANK_TEXT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_RANK_TEXT_H

#include <stdio.h>

#include "common/base/rank_set.h"

/* Writes "rank 3", "ranks 0 to 7, each" or "ranks 0-120:8, each of 16". */
void rank_text_write(const struct rank_set *members, FILE *out);

/* Writes "ranks 0 to 7, nearly equal; of these rank 3" of two MEMBERS or more,
 * of which the rank SHOWN is described. */
void rank_text_write_near(const struct rank_set *members, unsigned shown,
                          FILE *out);

#endif
