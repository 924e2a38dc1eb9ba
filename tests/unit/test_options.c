/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/options.h"

#include "check.h"

struct values {
    const char *gpu;
    uint64_t memory_bytes;
    uint32_t gpus;
    double limit_percent;
    int color;
    bool quiet;
    const char *output;
};

#define AT(field) .offset = offsetof(struct values, field)

static const struct option_row rows[] = {
    {"gpu", 0, OPTION_STRING, "NAME", AT(gpu), .help = "the card",
     .group = "GPUs"},
    {"memory", 0, OPTION_BYTES, "SIZE", AT(memory_bytes), .help = "its memory"},
    {"gpus", 0, OPTION_COUNT, "N", AT(gpus), .minimum = 1, .maximum = 16,
     .help = "how many\nof them"},
    {"fail-above", 0, OPTION_PERCENT, "PCT", AT(limit_percent), .help = "x"},
    {"color", 0, OPTION_CHOICE, "auto|always|never", AT(color), .help = "x"},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), .help = "say nothing",
     .group = "Output"},
    {"output", 'o', OPTION_STRING, "DIR", AT(output), .help = "where",
     .once = true},
    {0},
};

static struct options options = {.command = "memsim try",
                                 .operands = "FILE...",
                                 .summary = "Tries.",
                                 .examples = "  memsim try x",
                                 .rows = rows};

static struct values values;
static struct operands operands;
static struct err err;

/* Parses a command line given as words with single spaces between. */
static enum options_outcome parse(const char *line)
{
    static char words[256];
    static char *argv[32];
    int argc = 0;
    char *rest = words;

    snprintf(words, sizeof words, "try %s", line);
    memset(argv, 0, sizeof argv);
    while (rest)
        argv[argc++] = strsep(&rest, " ");
    values = (struct values){.gpus = 1};
    err_clear(&err);
    return options_parse(&options, argc, argv, &values, &operands, &err);
}

TEST(reads_every_type)
{
    CHECK(parse("--gpu a100 --memory 40GiB --gpus=8 --fail-above 92.5% "
                "--color=never -q -o dir file") == OPTIONS_OK);
    CHECK_STR(err.text, "");
    CHECK_STR(values.gpu, "a100");
    CHECK_UINT(values.memory_bytes, UINT64_C(40) << 30);
    CHECK_UINT(values.gpus, 8);
    CHECK_NEAR(values.limit_percent, 92.5, 0);
    CHECK_UINT((uint64_t)values.color, 2);
    CHECK(values.quiet);
    CHECK_STR(values.output, "dir");
    CHECK_UINT((uint64_t)operands.count, 1);
    CHECK_STR(operands.values[0], "file");
    CHECK(!operands.values[1]);
}

TEST(keeps_defaults)
{
    CHECK(parse("file") == OPTIONS_OK);
    CHECK_UINT(values.gpus, 1);
    CHECK(!values.gpu && !values.quiet);
}

TEST(joins_short_options)
{
    CHECK(parse("-qodir") == OPTIONS_OK);
    CHECK(values.quiet);
    CHECK_STR(values.output, "dir");
    CHECK(parse("-qo dir x") == OPTIONS_OK);
    CHECK_STR(values.output, "dir");
    CHECK_STR(operands.values[0], "x");
}

TEST(takes_options_after_operands)
{
    CHECK(parse("a -q b --gpus 2 - c") == OPTIONS_OK);
    CHECK_UINT((uint64_t)operands.count, 4);
    CHECK_STR(operands.values[0], "a");
    CHECK_STR(operands.values[1], "b");
    CHECK_STR(operands.values[2], "-");
    CHECK_STR(operands.values[3], "c");
    CHECK_UINT(values.gpus, 2);
}

TEST(a_command_ends_the_options)
{
    options.command_follows = true;
    CHECK(parse("-q python -o x --gpus 3") == OPTIONS_OK);
    CHECK_UINT((uint64_t)operands.count, 5);
    CHECK_STR(operands.values[0], "python");
    CHECK_UINT(values.gpus, 1);
    CHECK(parse("-q -- --strange -q") == OPTIONS_OK);
    CHECK_UINT((uint64_t)operands.count, 2);
    CHECK_STR(operands.values[0], "--strange");
}

TEST(help_needs_no_row)
{
    CHECK(parse("--help --nonsense") == OPTIONS_HELP);
    CHECK(parse("-h") == OPTIONS_HELP);
    CHECK(parse("-- --help") == OPTIONS_OK);
}

static void check_error(const char *line, const char *text)
{
    if (parse(line) != OPTIONS_ERROR)
        CHECK_FAIL("'%s' was accepted", line);
    CHECK_STR(err.text, text);
}

TEST(says_what_is_wrong)
{
    check_error("--gqu x", "--gqu: no such option; did you mean --gpu?");
    check_error("--fail=3", "--fail: no such option; did you mean "
                            "--fail-above?");
    check_error("--zzzzzz", "--zzzzzz: no such option");
    check_error("-x", "-x: no such option");
    check_error("--gpu", "--gpu needs an argument: NAME");
    check_error("-qo", "-o needs an argument: DIR");
    check_error("--gpu=", "--gpu: the NAME is empty");
    check_error("--quiet=yes", "--quiet takes no argument");
    check_error("--memory 80parsec", "--memory: '80parsec' is not a size such "
                                     "as 80GiB, 80GB or 85899345920");
    check_error("--memory 0", "--memory: '0' is not a size such as 80GiB, "
                              "80GB or 85899345920");
    check_error("--color blue",
                "--color: 'blue' is not one of auto|always|never");
    check_error("--color=a", "--color: 'a' is not one of auto|always|never");
}

TEST(refuses_numbers_out_of_range)
{
    const char *counts[] = {"0", "17", "-1", "", "1x", "99999999999999999999"};
    const char *percents[] = {"0", "-1", "101", "x", "5x", "nan", "inf", "5%%"};
    char line[64];

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        snprintf(line, sizeof line, "--gpus=%s", counts[i]);
        if (parse(line) != OPTIONS_ERROR)
            CHECK_FAIL("'%s' was accepted", line);
        CHECK(strstr(err.text, "a number from 1 to 16"));
    }
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        snprintf(line, sizeof line, "--fail-above=%s", percents[i]);
        if (parse(line) != OPTIONS_ERROR)
            CHECK_FAIL("'%s' was accepted", line);
        CHECK(strstr(err.text, "a percentage above 0"));
    }
}

TEST(the_table_is_the_help)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    options_help(&options, out);
    fclose(out);
    CHECK(strstr(text, "Usage: memsim try [OPTION]... FILE...\nTries.\n\n"
                       "GPUs:\n      --gpu NAME"));
    CHECK(strstr(text, "\n      --gpus N           how many\n"
                       "                         of them\n"));
    CHECK(strstr(text, "\n\nOutput:\n"
                       "  -q, --quiet            say nothing\n"));
    CHECK(strstr(text, "\n  -o, --output DIR       where\n"));
    CHECK(strstr(text, "\n\n      --help             print this help and exit\n"
                       "\nExamples:\n  memsim try x\n"));
    free(text);
}

TEST(what_would_be_lost_is_given_once)
{
    CHECK(parse("-o a --output b") == OPTIONS_ERROR);
    CHECK_STR(err.text, "--output is given twice; it takes one DIR");
    CHECK(parse("--gpu a --gpu b -o a") == OPTIONS_OK);
    CHECK_STR(values.gpu, "b");
}
