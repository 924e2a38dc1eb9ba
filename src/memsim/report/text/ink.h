/* SPDX-License-Identifier: Apache-2.0
 * The colours of a terminal that reports use. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_INK_H
#define MEMSIM_MEMSIM_REPORT_TEXT_INK_H

#include <stdbool.h>

enum ink { INK_PLAIN, INK_BOLD, INK_GOOD, INK_BAD, INK_WARN, INK_DIM };

/* What switches INK on; "" where there are to be no colours. */
static inline const char *ink_code(enum ink ink, bool color)
{
    static const char *const codes[] = {
        [INK_PLAIN] = "\033[0m",   [INK_BOLD] = "\033[1m",
        [INK_GOOD] = "\033[1;32m", [INK_BAD] = "\033[1;31m",
        [INK_WARN] = "\033[1;33m", [INK_DIM] = "\033[2m",
    };

    return color ? codes[ink] : "";
}

#endif
