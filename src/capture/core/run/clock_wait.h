/* SPDX-License-Identifier: Apache-2.0
 * Waits of the program for a time, on the user clock. They take as long as
 * they would without memsim: a deadline on the user clock is moved to the
 * host's. A thread whose wait for a time is over sees that time on its clock,
 * whatever the simulation says. */
#ifndef MEMSIM_CAPTURE_CLOCK_WAIT_H
#define MEMSIM_CAPTURE_CLOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Whether CLOCK is one that the user clock moves. */
bool clock_is_moved(clockid_t clock);

/* The user clock as this thread sees it, and as CLOCK shows it. */
uint64_t clock_user_now(void);
uint64_t clock_user(clockid_t clock);

#endif
