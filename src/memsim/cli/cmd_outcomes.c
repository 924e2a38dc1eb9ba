/* SPDX-License-Identifier: Apache-2.0
 * memsim outcomes: how predictions of memsim admit compare with what happened.
 * The work is Python's: lib/memsim/admit. */
#include "common/base/options_words.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/python_start.h"

struct values {
    const char *python, *database, *json;
    bool no_update;
};

#define ROW(field) .offset = offsetof(struct values, field)

/* clang-format off */
#define OUTCOMES_ROWS                                                          \
    {"database", 0, OPTION_STRING, "FILE", ROW(database),                      \
     .help = "where memsim admit recorded its predictions (default\n"          \
             "$XDG_STATE_HOME/memsim/outcomes.sqlite)"},                       \
    {"json", 0, OPTION_STRING, "FILE", ROW(json), .once = true,                \
     .help = "write all that is known as JSON; - is standard output"},         \
    {"no-update", 0, OPTION_FLAG, NULL, ROW(no_update),                        \
     .help = "do not ask Slurm what became of jobs"}
/* clang-format on */

static const struct option_row own_rows[] = {OUTCOMES_ROWS, {0}};
static const struct option_row rows[] = {
    OUTCOMES_ROWS,
    {"python", 0, OPTION_STRING, "PYTHON", ROW(python),
     .help = "Python 3.9 or newer (default python3)"},
    {0},
};

static const struct options options = {
    .command = "memsim outcomes",
    .operands = "",
    .summary =
        "Shows how the predictions of `memsim admit' compare with what became "
        "of the\njobs: false refusals, misses, and memory. It asks sacct, or "
        "scontrol where there\nis no accounting, for jobs that have ended.",
    .examples = "  memsim outcomes\n"
                "  memsim outcomes --database /shared/outcomes.sqlite "
                "--json -",
    .rows = rows,
};

int cmd_outcomes(int argc, char **argv)
{
    const struct values defaults = {.python = "python3"};
    struct values v = defaults;
    struct operands operands;
    struct err err = {""};
    char **words = NULL;
    size_t count = 0;
    int status = cmd_start(&options, argc, argv, &v, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (operands.count) {
        err_set(&err, "'%s': it takes no argument", operands.values[0]);
        return cmd_usage(&options, CMD_USAGE, &err);
    }
    options_word_add(&words, &count, "outcomes");
    options_words_add(&words, &count, own_rows, &v, &defaults);
    options_word_add(&words, &count, "--");
    python_start(v.python, "admit", words, "Python 3.9 or newer", &err);
    return cmd_fail(CMD_FAILED, &err);
}
