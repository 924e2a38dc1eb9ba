/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/size_sum.h"

#define BYTES_MOST 8    /* of an element */
#define SUM_LEAST  1025 /* smaller numbers are sums by chance */
#define SUM_MOST   (UINT64_C(1) << 45)
#define COUNT_MOST 4096 /* parameters */

struct search {
    uint64_t first, second; /* what is looked for */
    uint64_t wanted;
    bool found, differs;
};

static void try_sum(struct search *s, uint64_t first, uint64_t second,
                    uint64_t wanted)
{
    if (first != s->first || second != s->second)
        return;
    s->differs = s->differs || (s->found && wanted != s->wanted);
    s->found = true;
    s->wanted = wanted;
}

static uint64_t sum_sizes(const uint64_t *sizes, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += sizes[i];
    return sum;
}

/* Some parameters that have FIRST and SECOND elements. */
static bool find_elements(const struct size_sums *s, uint64_t first,
                          uint64_t second, uint64_t *wanted)
{
    struct search search = {.first = first, .second = second};
    uint64_t all[3] = {sum_sizes(s->first, s->count),
                       sum_sizes(s->second, s->count),
                       sum_sizes(s->wanted, s->count)};

    for (size_t i = 0; i < s->count; i++) {
        uint64_t a = 0, b = 0, c = 0;
        for (size_t j = i; j < s->count && a <= all[0]; j++) {
            a += s->first[j];
            b += s->second[j];
            c += s->wanted[j];
            try_sum(&search, a, b, c);
            try_sum(&search, all[0] - a, all[1] - b, all[2] - c);
        }
    }
    *wanted = search.wanted;
    return search.found && !search.differs;
}

/* The same of a number that is elements times BYTES, over PARTS. */
static bool find_part(const struct size_sums *s, struct size_sum *sum,
                      uint64_t bytes, uint64_t parts)
{
    uint64_t wanted;

    if (sum->first % bytes || sum->second % bytes ||
        !find_elements(s, sum->first / bytes * parts,
                       sum->second / bytes * parts, &wanted) ||
        wanted % parts)
        return false;
    sum->wanted = wanted / parts * bytes;
    return true;
}

static bool find_any(const struct size_sums *s, struct size_sum *sum)
{
    for (uint64_t bytes = 1; bytes <= BYTES_MOST; bytes *= 2)
        if (find_part(s, sum, bytes, 1) ||
            (s->ranks > 1 && find_part(s, sum, bytes, s->ranks)))
            return true;
    return false;
}

bool size_sum_find(struct size_sums *s, uint64_t first, uint64_t second,
                   uint64_t *wanted)
{
    struct size_sum sum = {.first = first, .second = second};

    if (first < SUM_LEAST || second < SUM_LEAST || first > SUM_MOST ||
        second > SUM_MOST || s->count > COUNT_MOST)
        return false;
    for (size_t i = 0; i < SIZE_SUMS_KEPT; i++)
        if (s->kept[i].first == first && s->kept[i].second == second) {
            *wanted = s->kept[i].wanted;
            return s->kept[i].found;
        }
    sum.found = find_any(s, &sum);
    s->kept[s->kept_count++ % SIZE_SUMS_KEPT] = sum;
    *wanted = sum.wanted;
    return sum.found;
}
