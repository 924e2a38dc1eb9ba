/* SPDX-License-Identifier: Apache-2.0
 * What Linux says of the CPUs: how long a thread has waited for one, and how
 * busy all of them are. A step's time depends on the host's, and these say
 * whether the host's time is this program's alone. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_HOST_CPUS_H
#define MEMSIM_CAPTURE_CORE_RUN_HOST_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/trace.h"

/* How long the calling thread has waited for a CPU so far. 0: Linux does not
 * say. Takes a few us. */
uint64_t host_cpus_waited(void);

/* Sets *NOW: since they began, what the calling thread has had, what this
 * process and those that the thread has started have had, and what all CPUs of
 * the machine did. False: Linux says nothing. Takes some us for each CPU of the
 * machine, and for each of the processes. */
bool host_cpus_read(struct trace_host_cpus *now);

#endif
