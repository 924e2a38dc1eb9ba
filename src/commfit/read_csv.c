/* SPDX-License-Identifier: Apache-2.0
 * Tables of commas: collective,nodes,gpus_per_node,size_bytes,dtype,time_us,
 * algbw_gbps,busbw_gbps,in_place[,rank,iter], in any order. */
#include "commfit/bench_check.h"
#include "commfit/read.h"
#include "common/base/simulated.h"
#include "common/base/text_begins.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COLUMNS_MAX 64

enum column {
    COLLECTIVE,
    NODES,
    GPUS,
    SIZE,
    TIME,
    ALGBW,
    BUSBW,
    IN_PLACE,
    RANK,
    ITER,
    COLUMN_COUNT,
};

static const struct {
    const char *name;
    bool needed;
} columns[COLUMN_COUNT] = {
    [COLLECTIVE] = {"collective", true},
    [NODES] = {"nodes", true},
    [GPUS] = {"gpus_per_node", true},
    [SIZE] = {"size_bytes", true},
    [TIME] = {"time_us", true},
    [ALGBW] = {"algbw_gbps", false},
    [BUSBW] = {"busbw_gbps", false},
    [IN_PLACE] = {"in_place", false},
    [RANK] = {"rank", false},
    [ITER] = {"iter", false},
};

struct csv {
    struct bench *bench;
    struct lines *lines;
    int place[COLUMN_COUNT]; /* of each column; -1: not there */
    int count;               /* of columns in the file */
};

/* Splits LINE in place; blanks and quotes around a field go. */
static int split_commas(char *line, char **fields)
{
    int count = 0;

    for (char *end; count < COLUMNS_MAX; line = end + 1) {
        end = line + strcspn(line, ",");
        bool last = !*end;
        *end = '\0';
        while (isspace((unsigned char)*line) || *line == '"')
            line++;
        for (char *p = end;
             p > line && (isspace((unsigned char)p[-1]) || p[-1] == '"');)
            *--p = '\0';
        fields[count++] = line;
        if (last)
            break;
    }
    return count;
}

/* The first GPU named by a "# ...; gpu: NAME; ..." line; memsim's mark. */
static int read_comment(struct csv *csv, const char *text, struct err *err)
{
    const char *gpu = strstr(text, "gpu: ");

    if (text_begins(text, SIMULATED_COMMENT))
        return bench_simulated(csv->bench, csv->lines->source, err);
    if (gpu && !csv->bench->gpu[0])
        snprintf(csv->bench->gpu, sizeof csv->bench->gpu, "%.*s",
                 (int)strcspn(gpu + 5, ";"), gpu + 5);
    return 0;
}

static int read_header(struct csv *csv, struct err *err)
{
    char *fields[COLUMNS_MAX];

    csv->count = split_commas(csv->lines->text, fields);
    for (int c = 0; c < COLUMN_COUNT; c++) {
        csv->place[c] = -1;
        for (int i = 0; i < csv->count; i++)
            if (!strcasecmp(fields[i], columns[c].name))
                csv->place[c] = i;
        if (csv->place[c] < 0 && columns[c].needed)
            return err_set(err,
                           "%s:%llu: no column %s; the header must be "
                           "collective,nodes,gpus_per_node,size_bytes,dtype,"
                           "time_us,algbw_gbps,busbw_gbps,in_place",
                           csv->lines->path,
                           (unsigned long long)csv->lines->number,
                           columns[c].name);
    }
    return 0;
}

static const char *column_field(const struct csv *csv, char **fields,
                                enum column c)
{
    return csv->place[c] < 0 ? "" : fields[csv->place[c]];
}

static bool parse_count(const char *text, uint64_t max, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && *value <= max;
}

/* Returns true and fills ROW and PRINTED, or false with the REASON. */
static bool parse_row(const struct csv *csv, char **fields,
                      struct bench_row *row, struct printed_row *printed,
                      enum bench_reason *reason)
{
    uint64_t nodes, gpus, in_place = 0;

    *reason = BENCH_UNKNOWN;
    if (fit_coll_find(column_field(csv, fields, COLLECTIVE), &row->coll))
        return false;
    *reason = BENCH_UNREADABLE;
    if (!parse_count(column_field(csv, fields, NODES), 1u << 20, &nodes) ||
        !parse_count(column_field(csv, fields, GPUS), 1u << 10, &gpus) ||
        !nodes || !gpus ||
        !parse_count(column_field(csv, fields, SIZE), UINT64_C(1) << 50,
                     &printed->bytes))
        return false;
    if (csv->place[IN_PLACE] >= 0 &&
        !parse_count(column_field(csv, fields, IN_PLACE), 1, &in_place))
        return false;
    printed->us = printed_parse(column_field(csv, fields, TIME));
    printed->algbw = printed_parse(column_field(csv, fields, ALGBW));
    printed->busbw = printed_parse(column_field(csv, fields, BUSBW));
    row->nodes = (uint32_t)nodes;
    row->gpus = (uint32_t)gpus;
    row->bytes = printed->bytes;
    row->us = printed->us.value;
    row->in_place = in_place;
    row->by_rank = csv->place[RANK] >= 0 || csv->place[ITER] >= 0;
    return true;
}

static bool check_row(const struct bench_row *row,
                      const struct printed_row *printed,
                      enum bench_reason *reason)
{
    double ranks = (double)row->nodes * row->gpus;

    if (!printed_check(printed, reason))
        return false;
    *reason = BENCH_ONE_RANK;
    if (ranks < 2)
        return false;
    *reason = BENCH_BUSBW;
    return printed_fits(printed, row->coll, ranks);
}

static int read_row(struct csv *csv, struct err *err)
{
    char *fields[COLUMNS_MAX], shown[80];
    struct bench_row row = {0};
    struct printed_row printed = {0};
    enum bench_reason reason = BENCH_UNREADABLE;

    snprintf(shown, sizeof shown, "%.79s", csv->lines->text);
    if (split_commas(csv->lines->text, fields) == csv->count &&
        parse_row(csv, fields, &row, &printed, &reason) &&
        check_row(&row, &printed, &reason))
        return bench_add(csv->bench, &row, err);
    bench_drop(csv->bench, reason, csv->lines->source, csv->lines->number,
               shown);
    return 0;
}

int read_csv(struct bench *b, struct lines *lines, struct err *err)
{
    struct csv csv = {.bench = b, .lines = lines};

    while (lines_next(lines)) {
        const char *text = lines->text + strspn(lines->text, " \t\r");

        if (!*text)
            continue;
        if (*text == '#') {
            if (read_comment(&csv, text, err))
                return -1;
        } else if (!csv.count || strcasestr(text, "size_bytes")) {
            if (read_header(&csv, err)) /* files may be joined */
                return -1;
        } else if (read_row(&csv, err))
            return -1;
    }
    return 0;
}
