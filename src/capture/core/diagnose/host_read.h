/* SPDX-License-Identifier: Apache-2.0
 * What the host reads of the GPU and nobody knows. Where integers or flags are
 * read, sizes and decisions may follow, and a policy has decided. Floating
 * numbers are given a series of small positive ones (doc/values.md). */
#ifndef MEMSIM_CAPTURE_HOST_READ_H
#define MEMSIM_CAPTURE_HOST_READ_H

#include <stdint.h>

/* Copies BYTES at SOURCE, on DEVICE, to the host at DESTINATION on STREAM. */
void host_read(uint64_t destination, uint64_t source, uint64_t bytes,
               int device, uint64_t stream);

#endif
