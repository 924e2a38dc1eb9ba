/* SPDX-License-Identifier: Apache-2.0
 * A set of compute capabilities. Takes no heap. */
#ifndef MEMSIM_COMMON_CATALOGUE_CAPABILITY_H
#define MEMSIM_COMMON_CATALOGUE_CAPABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPABILITY_WORDS 4
#define CAPABILITIES     160 /* 0.0 to 15.9 */

/* Bit 10 * major + minor. Zeroed, it is empty. */
struct capability_set {
    uint64_t bits[CAPABILITY_WORDS];
};

/* Adds all from FIRST to LAST, each as 75 for 7.5. */
void capability_add(struct capability_set *set, uint32_t first, uint32_t last);
bool capability_has(const struct capability_set *set, uint32_t major,
                    uint32_t minor);
bool capability_is_empty(const struct capability_set *set);

/* SET as "7.5-9.9,12.0-15.9" in TEXT, which it returns. */
const char *capability_text(const struct capability_set *set, char *text,
                            size_t size);

/* Reads such a text. Returns 0, or -1 with *SET empty. */
int capability_parse(const char *text, struct capability_set *set);

#endif
