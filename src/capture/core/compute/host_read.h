/* SPDX-License-Identifier: Apache-2.0
 * What the host reads of the GPU and nobody knows: where integers or flags are
 * read, sizes and decisions may follow, and a policy has decided. */
#ifndef MEMSIM_CAPTURE_READING_H
#define MEMSIM_CAPTURE_READING_H

#include <stdint.h>

/* BYTES at SOURCE, on DEVICE, are about to be copied to the host on STREAM. */
void reading_check(uint64_t source, uint64_t bytes, int device,
                   uint64_t stream);

#endif
