/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/log_row.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX 20

/* nccl-tests src/common.cu, test_typenames, of all its versions */
static const struct {
    const char *name;
    unsigned bytes;
} types[] = {
    {"int8", 1},    {"uint8", 1},   {"char", 1},     {"int32", 4},
    {"int", 4},     {"uint32", 4},  {"int64", 8},    {"uint64", 8},
    {"half", 2},    {"float", 4},   {"double", 8},   {"bfloat16", 2},
    {"f8e4m3", 1},  {"f8e5m2", 1},  {"fp8_e4m3", 1}, {"fp8_e5m2", 1},
    {"float16", 2}, {"float32", 4}, {"float64", 8},
};

unsigned log_type_bytes(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i].name))
            return types[i].bytes;
    return 0;
}

static bool read_whole(const char *token, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(token, &end, 10);
    return isdigit((unsigned char)*token) && !*end && !errno &&
           *value <= UINT64_C(1) << 50;
}

int log_row_find(char *const *tokens, size_t count)
{
    uint64_t value;

    for (size_t i = 0; i + 2 < count; i++)
        if (log_type_bytes(tokens[i + 2]) && read_whole(tokens[i], &value) &&
            read_whole(tokens[i + 1], &value))
            return (int)i;
    return -1;
}

static bool is_number(const char *token)
{
    char *end;

    strtod(token, &end);
    return (end != token && !*end) || !strcmp(token, "N/A");
}

/* The columns after the type: [redop] [root], then once or twice time, algbw,
 * busbw and perhaps #wrong (error), and with -I four more (nccl-tests
 * src/util.cu, writeBenchmarkLineBody). */
struct layout {
    bool root;
    uint8_t width; /* columns of one placement: 3, 4, or 8 with -I */
    uint8_t placements;
};

/* Those with more columns first; of equal ones, the commoner. */
static const struct layout layouts[] = {
    {true, 8, 2}, {false, 8, 2}, {true, 4, 2},  {false, 4, 2},
    {true, 8, 1}, {false, 8, 1}, {true, 3, 2},  {false, 3, 2},
    {true, 4, 1}, {true, 3, 1},  {false, 4, 1}, {false, 3, 1},
};

static bool root_plausible(const char *token)
{
    return token[strspn(token, "-0123456789")] == '\0';
}

/* "N/A", or a count of wrong elements, or (before 2.12) the largest error. */
static void read_check(const char *token, bool *wrong, bool *unchecked)
{
    struct printed p = printed_parse(token);

    *wrong = p.present && p.value >= 0.5;
    *unchecked = !p.present;
}

static void take_placements(char *const *tokens, const struct layout *layout,
                            struct log_row *row)
{
    row->placements = layout->placements;
    for (unsigned i = 0; i < layout->placements; i++, tokens += layout->width) {
        row->place[i] = (struct printed_row){
            .bytes = row->bytes,
            .us = printed_parse(tokens[0]),
            .algbw = printed_parse(tokens[1]),
            .busbw = printed_parse(tokens[2]),
        };
        row->wrong[i] = false;
        row->unchecked[i] = true;
        if (layout->width > 3)
            read_check(tokens[3], &row->wrong[i], &row->unchecked[i]);
    }
}

/* Whether the numbers of some placement agree with each other: a layout that
 * is off by a column does not pass. */
static bool row_agrees(const struct log_row *row)
{
    enum bench_reason reason;

    for (unsigned i = 0; i < row->placements; i++)
        if (printed_check(&row->place[i], &reason) ||
            reason == BENCH_NOT_FINITE || reason == BENCH_EMPTY)
            return true;
    return false;
}

static int take_layout(char *const *tokens, size_t count, struct log_row *row)
{
    int first = -1;

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const struct layout *l = &layouts[i];

        if (count != (size_t)l->root + l->width * l->placements ||
            (l->root && !root_plausible(tokens[0])))
            continue;
        row->has_root = l->root;
        row->root = l->root ? strtol(tokens[0], NULL, 10) : -1;
        take_placements(tokens + l->root, l, row);
        if (row_agrees(row))
            return 0;
        if (first < 0)
            first = (int)i;
    }
    if (first < 0)
        return -1;
    /* None agrees: as the commonest says, for the reason to be found. */
    take_placements(tokens + layouts[first].root, &layouts[first], row);
    return 0;
}

int log_row_parse(char *const *tokens, size_t count, struct log_row *row)
{
    size_t numbers = 0;

    if (count < 6 || !read_whole(tokens[0], &row->bytes) ||
        !read_whole(tokens[1], &row->count))
        return -1;
    snprintf(row->type, sizeof row->type, "%s", tokens[2]);
    tokens += 3;
    count -= 3;
    row->redop[0] = '\0';
    if (isalpha((unsigned char)**tokens) && !is_number(*tokens)) {
        snprintf(row->redop, sizeof row->redop, "%s", *tokens);
        tokens++;
        count--;
    }
    /* A time stamp (-T), or a glued comment, ends the numbers. */
    while (numbers < count && numbers < NUMBERS_MAX &&
           is_number(tokens[numbers]))
        numbers++;
    return take_layout(tokens, numbers, row);
}
