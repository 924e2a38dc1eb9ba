/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C (Castagnoli), as iSCSI and ext4 have it. */
#ifndef MEMSIM_COMMON_BASE_CRC32C_H
#define MEMSIM_COMMON_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of BYTES bytes at DATA, continuing from CRC (0 to start). */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
