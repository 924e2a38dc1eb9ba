/* SPDX-License-Identifier: Apache-2.0
 * Which GPUs of the catalogue a job fits on that ran out of memory. */
#ifndef MEMSIM_MEMSIM_ADVICE_ADVICE_GPUS_H
#define MEMSIM_MEMSIM_ADVICE_ADVICE_GPUS_H

#include "memsim/result/result.h"

/* Adds a note with those GPUs to RESULT, smallest first. It takes what
 * advice_run found the job to use without a limit. Adds nothing where that is
 * not known of every GPU of the job. */
void advice_gpus(struct result *result);

#endif
