/* SPDX-License-Identifier: Apache-2.0
 * Allocation that ends the program when the host has no memory left. For the
 * programs: in a user's process, where there is no heap, what shares code with
 * the programs gets these functions from src/capture/clock/arena.c. */
#ifndef MEMSIM_COMMON_BASE_XMALLOC_H
#define MEMSIM_COMMON_BASE_XMALLOC_H

#include <stddef.h>

void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t bytes); /* zeroed */
void *xreallocarray(void *p, size_t count, size_t bytes);
void xfree(void *p); /* free(3), of what these functions gave */
char *xstrdup(const char *text);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes room for one more element of BYTES bytes in the array *P that holds
 * COUNT of *CAPACITY; the array may move. */
void xgrow(void *p, size_t count, size_t *capacity, size_t bytes);

#endif
