/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/suggest.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"

#define HELP_COLUMN 25 /* where the help texts begin */

/* One option as it was given: what it is called in messages. */
struct given {
    const struct option_row *row;
    const char *spelling; /* "--gpu" or "-o", not terminated there */
    int spelling_length;
    const char *value; /* NULL for a flag */
};

static int value_error(const struct given *g, const char *wanted,
                       struct err *err)
{
    return err_set(err, "%.*s: '%s' is not %s", g->spelling_length, g->spelling,
                   g->value, wanted);
}

static int parse_flag(const struct given *g, void *value, struct err *err)
{
    (void)g;
    (void)err;
    *(bool *)value = true;
    return 0;
}

static int parse_string(const struct given *g, void *value, struct err *err)
{
    if (!*g->value)
        return err_set(err, "%.*s: the %s is empty", g->spelling_length,
                       g->spelling, g->row->argument);
    *(const char **)value = g->value;
    return 0;
}

/* Texts that were put together, for as long as the program runs. */
struct joined {
    struct joined *before;
    char text[];
};

static int parse_list(const struct given *g, void *value, struct err *err)
{
    static struct joined *all;
    const char *so_far = *(const char **)value;

    if (!so_far || !*g->value)
        return parse_string(g, value, err);
    struct joined *j =
        xmalloc(sizeof *j + strlen(so_far) + strlen(g->value) + 2);
    sprintf(j->text, "%s;%s", so_far, g->value);
    j->before = all;
    all = j;
    *(const char **)value = j->text;
    return 0;
}

static int parse_bytes(const struct given *g, void *value, struct err *err)
{
    uint64_t bytes;

    if (units_parse_bytes(g->value, &bytes) || !bytes)
        return value_error(g, "a size such as 80GiB, 80GB or 85899345920", err);
    *(uint64_t *)value = bytes;
    return 0;
}

static int parse_count(const struct given *g, void *value, struct err *err)
{
    char *end, wanted[64];

    errno = 0;
    unsigned long number = strtoul(g->value, &end, 10);
    if (errno || *end || !isdigit((unsigned char)*g->value) ||
        number < g->row->minimum || number > g->row->maximum) {
        snprintf(wanted, sizeof wanted, "a number from %u to %u",
                 g->row->minimum, g->row->maximum);
        return value_error(g, wanted, err);
    }
    *(uint32_t *)value = (uint32_t)number;
    return 0;
}

static int parse_percent(const struct given *g, void *value, struct err *err)
{
    char *end;
    double percent = strtod(g->value, &end);

    if (*end == '%')
        end++;
    if (*end || !isdigit((unsigned char)*g->value) || !(percent > 0) ||
        !(percent <= 100))
        return value_error(g, "a percentage above 0 and up to 100", err);
    *(double *)value = percent;
    return 0;
}

static int parse_fraction(const struct given *g, void *value, struct err *err)
{
    char *end;
    double fraction = strtod(g->value, &end);

    if (*end || !isdigit((unsigned char)*g->value) || !(fraction <= 1))
        return value_error(g, "a fraction from 0 to 1", err);
    *(double *)value = fraction;
    return 0;
}

static int parse_number(const struct given *g, void *value, struct err *err)
{
    char *end;
    double number = strtod(g->value, &end);

    if (*end || !isdigit((unsigned char)*g->value) || !isfinite(number))
        return value_error(g, "a finite number, not below 0", err);
    *(double *)value = number;
    return 0;
}

static int parse_choice(const struct given *g, void *value, struct err *err)
{
    const char *choice = g->row->argument;
    size_t length = strlen(g->value);
    char wanted[64];

    for (int i = 0; choice; i++) {
        size_t width = strcspn(choice, "|");
        if (width == length && !strncmp(choice, g->value, length)) {
            *(int *)value = i;
            return 0;
        }
        choice = choice[width] ? choice + width + 1 : NULL;
    }
    snprintf(wanted, sizeof wanted, "one of %s", g->row->argument);
    return value_error(g, wanted, err);
}

static int (*const parsers[])(const struct given *, void *, struct err *) = {
    [OPTION_FLAG] = parse_flag,         [OPTION_STRING] = parse_string,
    [OPTION_BYTES] = parse_bytes,       [OPTION_COUNT] = parse_count,
    [OPTION_PERCENT] = parse_percent,   [OPTION_CHOICE] = parse_choice,
    [OPTION_FRACTION] = parse_fraction, [OPTION_NUMBER] = parse_number,
    [OPTION_LIST] = parse_list,
};

static const struct option_row *row_by_name(const struct option_row *rows,
                                            const char *name, size_t length)
{
    for (; rows->name; rows++)
        if (strlen(rows->name) == length && !strncmp(rows->name, name, length))
            return rows;
    return NULL;
}

static const struct option_row *row_by_letter(const struct option_row *rows,
                                              char letter)
{
    for (; rows->name; rows++)
        if (rows->letter == letter)
            return rows;
    return NULL;
}

static int unknown_option(const struct options *options, const char *name,
                          int length, struct err *err)
{
    struct suggest nearest;
    char wanted[64];

    snprintf(wanted, sizeof wanted, "%.*s", length - 2, name + 2);
    suggest_start(&nearest, wanted, 1);
    for (const struct option_row *row = options->rows; row->name; row++)
        suggest_offer(&nearest, row->name);
    suggest_offer(&nearest, "help");
    if (nearest.count)
        return err_set(err, "%.*s: no such option; did you mean --%s?", length,
                       name, nearest.names[0]);
    return err_set(err, "%.*s: no such option", length, name);
}

struct cursor {
    const struct options *options;
    int at, argc;
    char **argv;
    void *values;
    struct err *err;
    uint64_t seen; /* rows with `once`, by place */
};

/* Refuses G where it was given before and is not to be lost. */
static int check_once(struct cursor *c, const struct given *g)
{
    size_t place = (size_t)(g->row - c->options->rows);
    uint64_t bit = place < 64 ? UINT64_C(1) << place : 0;

    if (!g->row->once)
        return 0;
    if (c->seen & bit)
        return err_set(c->err, "--%s is given twice; it takes one %s",
                       g->row->name, g->row->argument);
    c->seen |= bit;
    return 0;
}

static int option_apply(struct cursor *c, struct given *g)
{
    if (check_once(c, g))
        return -1;
    if (g->row->type == OPTION_FLAG && g->value)
        return err_set(c->err, "%.*s takes no argument", g->spelling_length,
                       g->spelling);
    if (g->row->type != OPTION_FLAG && !g->value) {
        if (c->at + 1 >= c->argc)
            return err_set(c->err, "%.*s needs an argument: %s",
                           g->spelling_length, g->spelling, g->row->argument);
        g->value = c->argv[++c->at];
    }
    return parsers[g->row->type](g, (char *)c->values + g->row->offset, c->err);
}

static enum options_outcome option_long(struct cursor *c)
{
    char *text = c->argv[c->at];
    size_t length = strcspn(text, "=");

    if (!strcmp(text, "--help"))
        return OPTIONS_HELP;
    struct given g = {
        .row = row_by_name(c->options->rows, text + 2, length - 2),
        .spelling = text,
        .spelling_length = (int)length,
        .value = text[length] ? text + length + 1 : NULL,
    };
    if (!g.row)
        return unknown_option(c->options, text, (int)length, c->err);
    return option_apply(c, &g);
}

/* "-qo DIR", "-oDIR". */
static enum options_outcome option_short(struct cursor *c)
{
    char *text = c->argv[c->at];

    for (char *letter = text + 1; *letter; letter++) {
        char spelling[] = {'-', *letter, '\0'};
        struct given g = {.row = row_by_letter(c->options->rows, *letter),
                          .spelling = spelling,
                          .spelling_length = 2};
        if (*letter == 'h' && !g.row)
            return OPTIONS_HELP;
        if (!g.row)
            return err_set(c->err, "-%c: no such option", *letter);
        bool takes_value = g.row->type != OPTION_FLAG;
        if (takes_value && letter[1])
            g.value = letter + 1;
        if (option_apply(c, &g))
            return OPTIONS_ERROR;
        if (takes_value)
            break;
    }
    return OPTIONS_OK;
}

static bool is_assignment(const struct cursor *c, const char *text)
{
    return c->options->assignments_first && strchr(text, '=');
}

/* Collects ARGV's operands in LIST, which has room for all of it. */
static enum options_outcome parse_all(struct cursor *c, char **list, int *count)
{
    for (c->at = 1; c->at < c->argc; c->at++) {
        char *text = c->argv[c->at];
        enum options_outcome outcome = OPTIONS_OK;

        if (!strcmp(text, "--")) {
            c->at += !(c->options->assignments_first && *count);
            break;
        }
        if (text[0] == '-' && text[1] == '-')
            outcome = option_long(c);
        else if (text[0] == '-' && text[1])
            outcome = option_short(c);
        else if (c->options->command_follows && !is_assignment(c, text))
            break;
        else
            list[(*count)++] = text;
        if (outcome != OPTIONS_OK)
            return outcome;
    }
    while (c->at < c->argc)
        list[(*count)++] = c->argv[c->at++];
    return OPTIONS_OK;
}

static bool count_is_wanted(const struct options *options, int count)
{
    return count >= options->operands_min &&
           (!options->operands_max || count <= options->operands_max);
}

enum options_outcome options_parse(const struct options *options, int argc,
                                   char **argv, void *values,
                                   struct operands *operands, struct err *err)
{
    struct cursor c = {options, 1, argc, argv, values, err, 0};
    char **list = xcalloc((size_t)argc + 1, sizeof *list);
    int count = 0;

    enum options_outcome outcome = parse_all(&c, list, &count);
    if (outcome == OPTIONS_OK && !count_is_wanted(options, count)) {
        err_set(err, "%s", options->wanted);
        outcome = OPTIONS_ERROR;
    }
    operands->count = count;
    operands->values = argv + argc - count;
    if (outcome == OPTIONS_OK)
        memcpy(operands->values, list, (size_t)count * sizeof *list);
    free(list);
    return outcome;
}

static void help_row(const struct option_row *row, FILE *out)
{
    char left[80];
    int width;

    if (row->group)
        fprintf(out, "\n%s:\n", row->group);
    if (row->letter)
        width =
            snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name);
    else
        width = snprintf(left, sizeof left, "      --%s", row->name);
    if (row->type != OPTION_FLAG)
        width += snprintf(left + width, sizeof left - (size_t)width, " %s",
                          row->argument);
    fputs(left, out);
    if (width >= HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", HELP_COLUMN - width, "");
    for (const char *p = row->help; *p; p++)
        if (*p == '\n')
            fprintf(out, "\n%*s", HELP_COLUMN, "");
        else
            fputc(*p, out);
    fputc('\n', out);
}

void options_help(const struct options *options, FILE *out)
{
    static const struct option_row help = {.name = "help",
                                           .type = OPTION_FLAG,
                                           .help = "print this help and exit"};

    fprintf(out, "Usage: %s %s%s\n%s\n%s", options->command,
            options->rows->name ? "[OPTION]... " : "", options->operands,
            options->summary, options->rows->group ? "" : "\n");
    for (const struct option_row *row = options->rows; row->name; row++)
        help_row(row, out);
    if (options->rows->group)
        fputc('\n', out);
    help_row(&help, out);
    if (options->examples)
        fprintf(out, "\nExamples:\n%s\n", options->examples);
}
