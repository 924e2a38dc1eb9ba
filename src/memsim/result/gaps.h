/* SPDX-License-Identifier: Apache-2.0
 * What a recording cannot show, because it did not happen in it. */
#ifndef MEMSIM_MEMSIM_RESULT_GAPS_H
#define MEMSIM_MEMSIM_RESULT_GAPS_H

#include "memsim/result/result.h"

/* Adds a note to RESULT, whose devices have their attributions, for a training
 * step without its backward, its optimizer or its successor. */
void gaps_note(struct result *result);

#endif
