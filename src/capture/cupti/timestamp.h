/* SPDX-License-Identifier: Apache-2.0
 * Times in records: the program's clock since 1970, or on a clock that the
 * program has registered. */
#ifndef MEMSIM_CAPTURE_CUPTI_TIMESTAMP_H
#define MEMSIM_CAPTURE_CUPTI_TIMESTAMP_H

#include <stdint.h>

#include <cupti.h>

/* FUNCTION, or NULL for none, tells the time from now on. */
void timestamp_register(CUpti_TimestampCallbackFunc function);

/* Looks at the registered clock: before times of the past are asked for. */
void timestamp_look(void);

/* UNIX_NS, as memsim_clock_unix() shows it, on the registered clock. */
uint64_t timestamp_of(uint64_t unix_ns);

/* Now. */
uint64_t timestamp_now(void);

#endif
