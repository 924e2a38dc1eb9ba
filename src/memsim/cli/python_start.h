/* SPDX-License-Identifier: Apache-2.0
 * The parts of memsim that are Python's: they run in the user's environment. */
#ifndef MEMSIM_MEMSIM_CLI_PYTHON_START_H
#define MEMSIM_MEMSIM_CLI_PYTHON_START_H

#include "common/base/err.h"

/* This program goes on as PYTHON with SCRIPT, which lies beside memsim's
 * libraries; its arguments are this program's path and WORDS, NULL-terminated.
 * Returns only with ERR set; NEEDS says what PYTHON has to have. */
void python_start(const char *python, const char *script, char *const *words,
                  const char *needs, struct err *err);

#endif
