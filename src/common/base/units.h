/* SPDX-License-Identifier: Apache-2.0
 * Sizes as people write and read them. */
#ifndef MEMSIM_COMMON_BASE_UNITS_H
#define MEMSIM_COMMON_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* Reads TEXT ("80GiB", "80GB", "1.5 GiB", "85899345920", "512M": a single
 * letter counts as binary) into *BYTES. Returns 0, or -1 where TEXT is no
 * size, is negative or does not fit in 64 bits. */
int units_parse_bytes(const char *text, uint64_t *bytes);

/* Writes BYTES as "44.48 GiB", "512 B" to OUT, always terminated; returns
 * OUT. 16 characters are enough. */
char *units_format_bytes(uint64_t bytes, char *out, size_t out_size);

#endif
