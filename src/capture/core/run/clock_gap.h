/* SPDX-License-Identifier: Apache-2.0
 * Time in which the program did nothing for reasons that a real run does not
 * have. It is taken out of the record clock where a record, or a look of the
 * program's at the time, comes long after the record before it:
 *
 *   - the thread could run, and had no CPU (Linux counts it: schedstat). Eight
 *     ranks on two cores must not look slower.
 *   - the process waited, for a data loader mostly, while the program's clock
 *     had jumped: the others had less time than the clock says. What the clock
 *     jumped since the last such wait is taken off it. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_CLOCK_GAP_H
#define MEMSIM_CAPTURE_CORE_RUN_CLOCK_GAP_H

#include <stdbool.h>
#include <stdint.h>

/* Under LOCK_RECORD. A gap of more than CLOCK_GAP_NS between records is looked
 * into; to do so takes about 1% of it. The record clock is NOW_NS, and was
 * LAST_NS at the last record. Returns what it is without the times above,
 * LAST_NS at least. */
uint64_t clock_gap(uint64_t last_ns, uint64_t now_ns);

/* Likewise: whether it is so long since LAST_NS, or since the last call of
 * clock_gap, that clock_gap has something to do at NOW_NS. */
bool clock_gap_is_long(uint64_t last_ns, uint64_t now_ns);

/* Likewise: OWN_NS of this thread have been taken out until now, and with them
 * what it waited for a CPU meanwhile. */
void clock_gap_skip(uint64_t own_ns);

/* Whether the calling thread has been looked at: it works with the GPU. */
bool clock_gap_knows(void);

/* This thread has waited for a time, for NS: that is not taken out. */
void clock_slept(uint64_t ns);

/* Under LOCK_RECORD: the simulation's host has waited for WAITED_NS in all. */
void clock_waited(uint64_t waited_ns);

#endif
