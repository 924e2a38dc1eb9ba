/* SPDX-License-Identifier: Apache-2.0 */
#include "fits/cost_lists.h"
#include "common/base/xmalloc.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUES  4000000
#define FAST_DIGITS 15 /* that a double holds */

static const char *const keys[] = {"edges", "trees"};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

/* --- cutting -------------------------------------------------------------- */

/* Behind the string that begins at AT; END where it does not end. */
static const char *string_end(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

/* Behind the list that begins at AT; NULL where it does not end or has texts.
 */
static const char *list_end(const char *at, const char *end)
{
    unsigned depth = 0;

    for (; at < end && *at != '"'; at++) {
        depth += *at == '[';
        if (*at == ']' && !--depth)
            return at + 1;
    }
    return NULL;
}

static bool is_key(const char *from, const char *to)
{
    size_t length = (size_t)(to - from) - 2;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (length == strlen(keys[i]) && !memcmp(from + 1, keys[i], length))
            return true;
    return false;
}

/* The list that follows the key which ends at AT; NULL: none does. */
static const char *list_after(const char *at, const char *end)
{
    at = skip_space(at, end);
    if (at == end || *at != ':')
        return NULL;
    at = skip_space(at + 1, end);
    return at < end && *at == '[' ? at : NULL;
}

static void cut_list(struct cost_lists *l, size_t from, size_t to)
{
    char number[24];
    int digits = snprintf(number, sizeof number, "%zu", l->count);

    if (to - from < (size_t)digits)
        return;
    for (size_t i = from; i < to; i++)
        if (l->rest[i] != '\n')
            l->rest[i] = ' ';
    memcpy(l->rest + from, number, (size_t)digits);
    xgrow(&l->lists, l->count, &l->capacity, sizeof *l->lists);
    l->lists[l->count++] = (struct cost_list){from, to};
}

void cost_lists_cut(struct cost_lists *l, const char *text, size_t length)
{
    const char *at = text, *end = text + length;

    *l = (struct cost_lists){.text = text, .rest = xmalloc(length + 1)};
    memcpy(l->rest, text, length);
    l->rest[length] = '\0';
    while (at < end && (at = memchr(at, '"', (size_t)(end - at)))) {
        const char *behind = string_end(at, end), *list, *list_stop;
        if (behind - at > 2 && is_key(at, behind) &&
            (list = list_after(behind, end)) &&
            (list_stop = list_end(list, end))) {
            cut_list(l, (size_t)(list - text), (size_t)(list_stop - text));
            behind = list_stop;
        }
        at = behind;
    }
}

void cost_lists_fini(struct cost_lists *l)
{
    free(l->rest);
    free(l->lists);
    *l = (struct cost_lists){.text = NULL};
}

/* --- reading -------------------------------------------------------------- */

/* A number at *AT, which the text goes on behind; moves *AT behind it. */
static bool read_number(const char **at, double *value)
{
    const char *from = *at, *digits = from + (*from == '-');
    const char *to = digits;
    int64_t whole = 0;

    while (*to >= '0' && *to <= '9' && to - digits < FAST_DIGITS)
        whole = 10 * whole + (*to++ - '0');
    if (to == digits)
        return false;
    *value = (double)(*from == '-' ? -whole : whole);
    if ((*to >= '0' && *to <= '9') || *to == '.' || *to == 'e' || *to == 'E') {
        char *stop;
        *value = strtod(from, &stop);
        to = stop;
    }
    *at = to;
    return true;
}

static bool character_take(const char **at, const char *end, char c)
{
    *at = skip_space(*at, end);
    if (*at == end || **at != c)
        return false;
    ++*at;
    return true;
}

/* "1, 2]" */
static bool read_values(const char **at, const char *end,
                        struct cost_numbers *n, size_t *total, size_t *room)
{
    if (character_take(at, end, ']'))
        return true;
    do {
        *at = skip_space(*at, end);
        if (*at == end || *total >= MAX_VALUES)
            return false;
        xgrow(&n->values, *total, room, sizeof *n->values);
        if (!read_number(at, &n->values[(*total)++]))
            return false;
    } while (character_take(at, end, ','));
    return character_take(at, end, ']');
}

static bool read_lists(const char *at, const char *end, struct cost_numbers *n)
{
    size_t total = 0, value_room = 0, starts = 1, start_room = 1;

    n->starts = xcalloc(1, sizeof *n->starts);
    if (!character_take(&at, end, '['))
        return false;
    if (character_take(&at, end, ']'))
        return true;
    do {
        if (!character_take(&at, end, '[') ||
            !read_values(&at, end, n, &total, &value_room))
            return false;
        xgrow(&n->starts, starts, &start_room, sizeof *n->starts);
        n->starts[starts] = (uint32_t)total;
        n->count = (uint32_t)starts++;
    } while (character_take(&at, end, ','));
    return character_take(&at, end, ']') && at == end;
}

int cost_lists_read(const struct cost_lists *l, const cJSON *item,
                    struct cost_numbers *n)
{
    *n = (struct cost_numbers){.count = 0};
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
        !(item->valuedouble < (double)l->count))
        return -1;
    const struct cost_list *list = &l->lists[(size_t)item->valuedouble];
    return read_lists(l->text + list->from, l->text + list->to, n) ? 0 : -1;
}
