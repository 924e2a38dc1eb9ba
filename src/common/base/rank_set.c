/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/rank_set.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define RANGE_LENGTH 40 /* of ",4294967295-4294967295:4294967295", and more */

static void range_new(struct rank_set *set, uint32_t rank)
{
    xgrow(&set->ranges, set->range_count, &set->range_capacity,
          sizeof *set->ranges);
    set->ranges[set->range_count++] = (struct range){rank, 1, 0};
}

/* Two ranks that are not neighbours begin no range yet: of 0, 2, 3, 4 the last
 * three do. */
void rank_set_add(struct rank_set *set, uint32_t rank)
{
    struct range *last =
        set->range_count ? &set->ranges[set->range_count - 1] : NULL;

    set->count++;
    if (last && range_extend(last, rank))
        return;
    if (!last || last->count != 2 || last->stride == 1) {
        range_new(set, rank);
        return;
    }
    uint32_t second = range_at(last, 1);
    *last = (struct range){last->first, 1, 0};
    range_new(set, second);
    range_extend(&set->ranges[set->range_count - 1], rank);
}

static uint32_t range_last(const struct range *range)
{
    return range_at(range, range->count - 1);
}

static uint32_t range_stride(const struct range *range)
{
    return range->count > 1 ? (uint32_t)range->stride : 1;
}

bool rank_set_next(const struct rank_set *set, uint32_t from, uint32_t *rank)
{
    for (size_t i = 0; i < set->range_count; i++) {
        const struct range *r = &set->ranges[i];
        uint32_t stride = range_stride(r), behind;

        if (range_last(r) < from)
            continue;
        behind = from > r->first ? from - r->first : 0;
        *rank = r->first + (behind + stride - 1) / stride * stride;
        return true;
    }
    return false;
}

bool rank_set_has(const struct rank_set *set, uint32_t rank)
{
    uint32_t found;

    return rank_set_next(set, rank, &found) && found == rank;
}

void rank_set_merge(struct rank_set *set, const struct rank_set *other)
{
    struct rank_set both = {.count = 0};
    uint32_t a = 0, b = 0;
    bool more_a = rank_set_next(set, 0, &a);
    bool more_b = rank_set_next(other, 0, &b);

    while (more_a || more_b) {
        uint32_t least = more_a && (!more_b || a <= b) ? a : b;
        rank_set_add(&both, least);
        if (more_a && a == least)
            more_a = least < UINT32_MAX && rank_set_next(set, least + 1, &a);
        if (more_b && b == least)
            more_b = least < UINT32_MAX && rank_set_next(other, least + 1, &b);
    }
    rank_set_fini(set);
    *set = both;
}

char *rank_set_text(const struct rank_set *set)
{
    char *text = xmalloc(set->range_count * RANGE_LENGTH + 1), *at = text;

    *at = '\0';
    for (size_t i = 0; i < set->range_count; i++) {
        const struct range *r = &set->ranges[i];

        at += sprintf(at, "%s%" PRIu32, i ? "," : "", r->first);
        if (r->count == 2 && r->stride != 1)
            at += sprintf(at, ",%" PRIu32, range_last(r));
        else if (r->count > 1)
            at += sprintf(at, "-%" PRIu32, range_last(r));
        if (r->count > 2 && r->stride != 1)
            at += sprintf(at, ":%" PRIu32, range_stride(r));
    }
    return text;
}

/* Reads a number below LIMIT from *AT and moves on. */
static bool parse_number(const char **at, uint32_t limit, uint32_t *number)
{
    unsigned long value;
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    value = strtoul(*at, &end, 10);
    if (errno || value >= limit)
        return false;
    *at = end;
    *number = (uint32_t)value;
    return true;
}

/* Adds "3", "0-127" or "0-120:8" at *AT. */
static bool parse_range(struct rank_set *set, const char **at, uint32_t limit)
{
    struct rank_set part = {.count = 0};
    uint32_t first, last, stride = 1;

    if (!parse_number(at, limit, &first))
        return false;
    last = first;
    if (**at == '-') {
        ++*at;
        if (!parse_number(at, limit, &last) || last < first)
            return false;
        if (**at == ':') {
            ++*at;
            if (!parse_number(at, limit, &stride) || !stride)
                return false;
        }
    }
    for (uint64_t rank = first; rank <= last; rank += stride)
        rank_set_add(&part, (uint32_t)rank);
    rank_set_merge(set, &part);
    rank_set_fini(&part);
    return true;
}

int rank_set_parse(struct rank_set *set, const char *text, uint32_t limit,
                   const char *origin, struct err *err)
{
    const char *at = text;
    bool good;

    *set = (struct rank_set){.count = 0};
    do {
        good = parse_range(set, &at, limit) && (!*at || *at == ',');
    } while (good && *at++);
    if (good)
        return 0;
    rank_set_fini(set);
    return err_set(err,
                   "%s: '%s' is no list of ranks below %" PRIu32
                   ", such as 0-7,16 or 0-56:8",
                   origin, text, limit);
}

void rank_set_fini(struct rank_set *set)
{
    xfree(set->ranges);
    *set = (struct rank_set){.count = 0};
}
