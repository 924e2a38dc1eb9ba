/* SPDX-License-Identifier: Apache-2.0
 * "Did you mean": the names nearest to a mistyped one. */
#ifndef MEMSIM_COMMON_BASE_SUGGEST_H
#define MEMSIM_COMMON_BASE_SUGGEST_H

#include <stddef.h>
#include <stdint.h>

#define SUGGEST_MAX 5

/* Of the names offered, the nearest ones, best first. The names are borrowed:
 * they must outlive this. */
struct suggest {
    const char *wanted;
    size_t limit;
    size_t count;
    const char *names[SUGGEST_MAX];
    unsigned distances[SUGGEST_MAX];
};

/* Starts with WANTED (borrowed), keeping at most LIMIT names (<= SUGGEST_MAX).
 */
void suggest_start(struct suggest *s, const char *wanted, size_t limit);

/* Keeps NAME if it is near: if it begins with WANTED but for one letter in
 * four, or differs from it by one in three; case ignored. */
void suggest_offer(struct suggest *s, const char *name);

#endif
