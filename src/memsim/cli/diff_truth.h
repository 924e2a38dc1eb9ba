/* SPDX-License-Identifier: Apache-2.0
 * memsim diff ESTIMATE RUN --truth: a predicted run beside the same script on a
 * real GPU. A part of the command line: it prints. */
#ifndef MEMSIM_MEMSIM_CLI_DIFF_TRUTH_H
#define MEMSIM_MEMSIM_CLI_DIFF_TRUTH_H

#include "memsim/cli/output.h"

/* Compares the directories ESTIMATE and RUN. SAVE: the file that what was
 * learnt is written to, or NULL. Returns 0, or -1 with ERR set. */
int diff_truth(const char *estimate, const char *run, const char *save,
               const struct output_options *options, struct err *err);

#endif
