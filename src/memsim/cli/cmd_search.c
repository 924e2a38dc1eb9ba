/* SPDX-License-Identifier: Apache-2.0
 * memsim search: the best configuration of a job. The work is Python's, in the
 * user's environment: lib/memsim/search. */
#include <stdlib.h>
#include <string.h>

#include "common/base/options_words.h"
#include "common/base/xmalloc.h"
#include "memsim/cli/cmd.h"
#include "memsim/run/job_start.h"
#include "memsim/cli/python_start.h"
#include "memsim/run/launch.h"
#include "memsim/run/ranks.h"

#define SEARCH_JOBS 256

struct search_options {
    const char *python, *output, *json, *csv, *html, *goal, *price, *price_kind,
        *submit;
    int strategy, storage;
    uint32_t jobs, trials, seed, patience, trial_timeout;
    bool no_prune, retry_failed, quiet;
    struct job_options job;
    struct launch_options launch;
    const char *cluster, *fit, *host_speed, *quantile;
    uint32_t steps, input_max;
};

#define ROW(field) .offset = offsetof(struct search_options, field)

/* clang-format off */
/* What the search itself takes. */
#define SEARCH_ROWS                                                            \
    {"goal", 0, OPTION_STRING, "GOAL", ROW(goal), .group = "Search",           \
     .help = "what is best: time, tokens/s, samples/s, cost, gpus or\n"        \
             "batch (default: that of SPACE, else time)"},                     \
    {"price", 0, OPTION_STRING, "PRICE", ROW(price),                           \
     .help = "of an hour of one GPU: 2.99; of a node: 98.5/node; or\n"         \
             "a file: {\"h100\": 2.99, \"l4\": {\"on-demand\": 0.71,\n"        \
             "\"spot\": 0.28}}"},                                              \
    {"price-kind", 0, OPTION_STRING, "KIND", ROW(price_kind),                  \
     .help = "which price of such a file (default on-demand)"},                \
    {"strategy", 0, OPTION_CHOICE,                                             \
     "auto|exhaustive|random|tpe|cmaes|gp", ROW(strategy),                     \
     .help = "how points are chosen; the last three need the\n"                \
             "package optuna (default: all of up to 256 points, else\n"        \
             "tpe, or random without optuna)"},                                \
    {"trials", 0, OPTION_COUNT, "N", ROW(trials), .minimum = 1,                \
     .maximum = 1000000,                                                       \
     .help = "at most N trials (default 300, exhaustive: all)"},               \
    {"patience", 0, OPTION_COUNT, "N", ROW(patience),                          \
     .maximum = 1000000,                                                       \
     .help = "end when the best five did not change for N trials; 0:\n"        \
             "never (default 20, exhaustive: 0)"},                             \
    {"trial-timeout", 0, OPTION_COUNT, "SECONDS", ROW(trial_timeout),          \
     .minimum = 1, .maximum = 1000000,                                         \
     .help = "end a trial after this time (default: never)"},                  \
    {"retry-failed", 0, OPTION_FLAG, NULL, ROW(retry_failed),                  \
     .help = "try again what failed before for another reason than\n"          \
             "memory, or was over its time"},                                  \
    {"seed", 0, OPTION_COUNT, "N", ROW(seed), .maximum = INT32_MAX,            \
     .help = "of the strategy's random numbers (default 0)"},                  \
    {"no-prune", 0, OPTION_FLAG, NULL, ROW(no_prune),                          \
     .help = "leave out no point that others decide on"},                      \
    {"jobs", 'j', OPTION_COUNT, "N", ROW(jobs), .minimum = 1,                  \
     .maximum = SEARCH_JOBS,                                                   \
     .help = "run N trials at a time, each on its part of this\n"              \
             "machine's CPUs (default 1)"},                                    \
    {"submit", 0, OPTION_STRING, "slurm|CMD {}", ROW(submit),                  \
     .help = "run the trials on other machines: as arrays of Slurm\n"          \
             "(slurm OPTION... has options for sbatch), or by a\n"             \
             "command with the trial's in place of {}: 'srun {}';\n"           \
             "-j is how many at a time"},                                      \
    {"output", 'o', OPTION_STRING, "DIR", ROW(output), .once = true,           \
     .help = "keep the trials in this directory; the same command\n"           \
             "goes on from there (default: SPACE.search)"},                    \
    {"storage", 0, OPTION_CHOICE, "journal|sqlite", ROW(storage),              \
     .help = "what optuna keeps its study in, in that directory\n"             \
             "(default journal)"},                                             \
    {"json", 0, OPTION_STRING, "FILE", ROW(json), .group = "Output",           \
     .once = true, .help = "write all trials as JSON; - is standard output"},  \
    {"csv", 0, OPTION_STRING, "FILE", ROW(csv), .once = true,                  \
     .help = "write all trials as CSV; - is standard output"},                 \
    {"html", 0, OPTION_STRING, "FILE", ROW(html), .once = true,                \
     .help = "write a page with a scatter plot and parallel\n"                 \
             "coordinates"},                                                   \
    {"quiet", 'q', OPTION_FLAG, NULL, ROW(quiet),                              \
     .help = "print errors only"}

/* What each trial takes, as `memsim run' does. */
#define RUN_ROWS                                                               \
    JOB_ROWS(struct search_options, job),                                      \
    LAUNCH_ROWS(struct search_options, launch),                                \
    {"steps", 0, OPTION_COUNT, "N", ROW(steps), .group = "Trials",             \
     .minimum = 1, .maximum = UINT32_MAX,                                      \
     .help = "the job will run N steps: memory that grows has to\n"            \
             "last for them"},                                                 \
    {"input-max", 0, OPTION_COUNT, "N", ROW(input_max), .minimum = 1,          \
     .maximum = UINT32_MAX,                                                    \
     .help = "the longest sample has N tokens: it has to fit"},                \
    {"cluster", 0, OPTION_STRING, "NAME|FILE.json", ROW(cluster),              \
     .help = "predict NCCL's collectives on this cluster"},                    \
    {"fit", 0, OPTION_STRING, "FIT.json", ROW(fit),                            \
     .help = "predict operators with this fit"},                               \
    {"host-speed", 0, OPTION_STRING, "X", ROW(host_speed),                     \
     .help = "speed of the host relative to this machine; with 0 the\n"        \
             "host takes no time, and a trial gives the same each\n"           \
             "time"},                                                          \
    {"quantile", 0, OPTION_STRING, "Q", ROW(quantile),                         \
     .help = "predict collectives at this quantile, 0.5 to 0.99"}
/* clang-format on */

static const struct option_row search_rows[] = {SEARCH_ROWS, {0}};
static const struct option_row run_rows[] = {RUN_ROWS, {0}};
static const struct option_row rows[] = {
    SEARCH_ROWS,
    RUN_ROWS,
    {"python", 0, OPTION_STRING, "PYTHON", ROW(python), .group = "Python",
     .help = "Python 3.9 or newer that searches; COMMAND has its own\n"
             "(default python3)"},
    {0},
};

static const struct options options = {
    .command = "memsim search",
    .operands = "SPACE.toml -- COMMAND [ARGUMENT]...",
    .summary =
        "Finds the best of the configurations that SPACE.toml describes. It "
        "runs COMMAND\nas `memsim run' does, with values in place of {NAME}; "
        "{args} is all of them.\nPoints that others decide on are left "
        "out.\n\n"
        "Exit status:\n"
        "    0  a point was found\n"
        "  120  no point fits and keeps the limits\n"
        "  125  memsim failed, or all trials did for another reason than "
        "memory",
    .examples =
        "  memsim search space.toml -- python train.py {args}\n"
        "  memsim search --goal cost --price 2.99 -j 4 space.toml -- \\\n"
        "      python train.py --batch {batch}",
    .rows = rows,
    .wanted = "give SPACE.toml, then -- and a command",
    .operands_min = 2,
};

#define DEFAULTS                                                               \
    {.python = "python3", .jobs = 1, .patience = UINT32_MAX,                   \
     .job = JOB_DEFAULTS}

/* SPACE OPTION... -- RUN-OPTION... -- COMMAND... */
static char **search_words(const struct search_options *o,
                           const struct operands *operands)
{
    const struct search_options defaults = DEFAULTS;
    char **words = NULL, *names = options_words_names(run_rows), *option;
    size_t count = 0;

    options_word_add(&words, &count, operands->values[0]);
    options_words_add(&words, &count, search_rows, o, &defaults);
    option = xasprintf("--names=%s", names);
    options_word_add(&words, &count, option);
    options_word_add(&words, &count, "--");
    options_words_add(&words, &count, run_rows, o, &defaults);
    options_word_add(&words, &count, "--");
    for (int i = 1; i < operands->count; i++)
        options_word_add(&words, &count, operands->values[i]);
    free(option);
    free(names);
    return words;
}

int cmd_search(int argc, char **argv)
{
    struct search_options o = DEFAULTS;
    struct operands operands;
    struct err err = {""};
    struct gpu gpu;
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);

    if (status >= 0)
        return status;
    if (job_gpu(&o.job, &gpu, &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    python_start(o.python, "search", search_words(&o, &operands),
                 "Python 3.9 or newer", &err);
    return cmd_fail(CMD_RUN_FAILED, &err);
}
