/* SPDX-License-Identifier: Apache-2.0
 * --delay-lib: a shared object that says delays (memsim_delay.h). */
#ifndef MEMSIM_PLAYBACK_DELAY_LIBRARY_H
#define MEMSIM_PLAYBACK_DELAY_LIBRARY_H

#include "common/base/err.h"
#include "playback/delay.h"

/* Loads PATH for the rest of the process. *FUNCTION asks it; where it crashes,
 * its first crash is kept and it answers 0 from then on. Returns 0, or -1 with
 * ERR set. */
int delay_library_open(const char *path, delay_function **function,
                       struct err *err);

/* What became of it: NULL, or how it crashed. */
const char *delay_library_crash(void);

#endif
