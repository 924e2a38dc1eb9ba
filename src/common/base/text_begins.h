/* SPDX-License-Identifier: Apache-2.0
 * Whether a text begins with another: without a length that can be wrong. */
#ifndef MEMSIM_COMMON_BASE_TEXT_BEGINS_H
#define MEMSIM_COMMON_BASE_TEXT_BEGINS_H

#include <stdbool.h>
#include <string.h>

static inline bool text_begins(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

#endif
