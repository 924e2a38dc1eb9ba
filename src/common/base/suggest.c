/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_LENGTH 64 /* longer ones are cut, for the distance only */

static unsigned least_of_three(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

/* Levenshtein's, one row at a time. */
static unsigned edit_distance(const char *a, const char *b)
{
    size_t a_length = strnlen(a, NAME_MAX_LENGTH);
    size_t b_length = strnlen(b, NAME_MAX_LENGTH);
    unsigned row[NAME_MAX_LENGTH + 1];

    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned changed = tolower((unsigned char)a[i - 1]) !=
                               tolower((unsigned char)b[j - 1]);
            unsigned best =
                least_of_three(row[j] + 1, row[j - 1] + 1, diagonal + changed);
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[b_length];
}

void suggest_start(struct suggest *s, const char *wanted, size_t limit)
{
    *s = (struct suggest){.wanted = wanted, .limit = limit};
}

/* What is yet to type costs little: "h1000" is near "h100-sxm-80gb". */
static unsigned name_distance(const char *wanted, const char *name)
{
    char start[NAME_MAX_LENGTH + 1];
    size_t length = strnlen(wanted, NAME_MAX_LENGTH);
    unsigned whole = edit_distance(wanted, name);

    snprintf(start, sizeof start, "%.*s", (int)length, name);
    unsigned typos = edit_distance(wanted, start);
    if (length >= 2 && typos <= length / 4)
        return typos * NAME_MAX_LENGTH + whole;
    if (whole <= (length + 2) / 3)
        return whole * NAME_MAX_LENGTH;
    return UINT32_MAX;
}

void suggest_offer(struct suggest *s, const char *name)
{
    unsigned distance = name_distance(s->wanted, name);
    size_t at = s->count;

    if (distance == UINT32_MAX)
        return;
    while (at > 0 && s->distances[at - 1] > distance)
        at--;
    if (at >= s->limit)
        return;
    if (s->count < s->limit)
        s->count++;
    size_t moved = s->count - at - 1;
    memmove(s->names + at + 1, s->names + at, moved * sizeof *s->names);
    memmove(s->distances + at + 1, s->distances + at,
            moved * sizeof *s->distances);
    s->names[at] = name;
    s->distances[at] = distance;
}
