/* SPDX-License-Identifier: Apache-2.0
 * memsim diff ESTIMATE TRACE: a predicted step against a profile of the same
 * script. A part of the command line: it prints. */
#ifndef MEMSIM_MEMSIM_CLI_DIFF_PROFILE_H
#define MEMSIM_MEMSIM_CLI_DIFF_PROFILE_H

#include "memsim/cli/output.h"

/* Prints the steps of ESTIMATE, a run or a profile, beside those of the profile
 * TRACE. Returns memsim's exit status, ERR set where it failed. */
int diff_profile(const char *estimate, const char *trace,
                 const struct output_options *options, struct err *err);

#endif
