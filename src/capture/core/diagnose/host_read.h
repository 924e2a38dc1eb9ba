/* SPDX-License-Identifier: Apache-2.0
 * Reads of unknown device values by the host. Sizes and decisions may depend on
 * integers and flags; a policy chooses those. Unknown floating-point numbers
 * become a series of small positive numbers (doc/values.md). */
#ifndef MEMSIM_CAPTURE_CORE_DIAGNOSE_HOST_READ_H
#define MEMSIM_CAPTURE_CORE_DIAGNOSE_HOST_READ_H

#include <stdint.h>

/* Copies BYTES at SOURCE, on DEVICE, to the host at DESTINATION on STREAM. */
void host_read(uint64_t destination, uint64_t source, uint64_t bytes,
               int device, uint64_t stream);

#endif
