/* SPDX-License-Identifier: Apache-2.0
 * Errors of the pure core: one message, set once, where it was decided. */
#ifndef MEMSIM_COMMON_BASE_ERR_H
#define MEMSIM_COMMON_BASE_ERR_H

#include <stddef.h>

struct err {
    char text[512]; /* "INPUT:PLACE: cause; remedy", no trailing newline */
};

/* Sets E's text, quoted and cut in the middle to fit (text_quote), unless E is
 * NULL or already holds one: the first cause is the one worth telling. Returns
 * -1, so that a function can end in `return err_set(e, ...)`. */
int err_set(struct err *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Empties E (which may be NULL). */
void err_clear(struct err *e);

#endif
