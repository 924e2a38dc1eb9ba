/* SPDX-License-Identifier: Apache-2.0
 * memsim admit: predicts a Slurm job before it is submitted. The work is
 * Python's: lib/memsim/admit. */
#include "common/base/options_words.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/python_start.h"
#include "memsim/run/job.h"

#define STEPS_MIN 2
#define STEPS_MAX 10

struct admit_options {
    const char *python, *database, *in_job, *filter, *submitted;
    const char *cluster, *quantile;
    int policy;
    uint32_t stop_after, timeout, steps, input_max;
    bool dry_run;
    struct job_options job;
};

#define ROW(field) .offset = offsetof(struct admit_options, field)

/* clang-format off */
#define ADMIT_ROWS                                                             \
    {"policy", 0, OPTION_CHOICE, "refuse|annotate", ROW(policy),               \
     .group = "Admission",                                                     \
     .help = "do not submit what is predicted not to fit (default),\n"         \
             "or submit it with the prediction in its comment"},               \
    {"stop-after", 0, OPTION_COUNT, "N", ROW(stop_after),                      \
     .minimum = STEPS_MIN, .maximum = STEPS_MAX,                               \
     .help = "run N steps, 2 to 10 (default 3)"},                              \
    {"timeout", 0, OPTION_COUNT, "SECONDS", ROW(timeout), .minimum = 1,        \
     .maximum = 1000000,                                                       \
     .help = "end the run after this time (default 600); if it took a\n"       \
             "step, it fitted so far"},                                        \
    {"in-job", 0, OPTION_STRING, "OPTIONS", ROW(in_job),                       \
     .help = "make the run in a short job, with these options of\n"            \
             "srun: '-p cpu -t 10'"},                                          \
    {"dry-run", 0, OPTION_FLAG, NULL, ROW(dry_run),                            \
     .help = "predict, and submit and record nothing"},                        \
    {"database", 0, OPTION_STRING, "FILE", ROW(database),                      \
     .help = "where predictions are recorded (default\n"                       \
             "$XDG_STATE_HOME/memsim/outcomes.sqlite)"},                       \
    {"filter", 0, OPTION_STRING, "FILE", ROW(filter),                          \
     .help = "answer Slurm's cli_filter.lua"},                                 \
    {"submitted", 0, OPTION_STRING, "NUMBER=JOB", ROW(submitted),              \
     .help = "the same, of a job that was submitted"}

#define RUN_ROWS                                                               \
    JOB_ROWS(struct admit_options, job),                                       \
    {"steps", 0, OPTION_COUNT, "N", ROW(steps), .group = "Run",                \
     .minimum = 1, .maximum = UINT32_MAX,                                      \
     .help = "the job will run N steps: memory that grows has to\n"            \
             "last for them (needs --stop-after 6 or more)"},                  \
    {"input-max", 0, OPTION_COUNT, "N", ROW(input_max), .minimum = 1,          \
     .maximum = UINT32_MAX,                                                    \
     .help = "the longest sample has N tokens: it has to fit"},                \
    {"cluster", 0, OPTION_STRING, "NAME|FILE.json", ROW(cluster),              \
     .help = "predict NCCL's collectives on this cluster"},                    \
    {"quantile", 0, OPTION_STRING, "Q", ROW(quantile),                         \
     .help = "predict collectives at this quantile, 0.5 to 0.99"}
/* clang-format on */

static const struct option_row admit_rows[] = {ADMIT_ROWS, {0}};
static const struct option_row run_rows[] = {RUN_ROWS, {0}};
static const struct option_row rows[] = {
    ADMIT_ROWS,
    RUN_ROWS,
    {"python", 0, OPTION_STRING, "PYTHON", ROW(python), .group = "Python",
     .help = "Python 3.9 or newer that does the work; the job has its\n"
             "own (default python3)"},
    {0},
};

static const struct options options = {
    .command = "memsim admit",
    .operands = "[--] [SBATCH-OPTION]... [SCRIPT [ARGUMENT]...]",
    .summary =
        "Predicts a Slurm job, and submits it with sbatch unless it is "
        "predicted to run\nout of memory. It runs SCRIPT for a few steps as "
        "`memsim run' does, on this\nmachine or in a short job, and writes "
        "the prediction into the job's comment and\ninto a database "
        "(`memsim outcomes').\n\n"
        "Exit status: that of sbatch, except:\n"
        "  120  not submitted: it is predicted not to fit\n"
        "  125  memsim failed, and did not submit it",
    .examples = "  memsim admit train.sbatch\n"
                "  memsim admit --policy annotate -- --nodes 2 train.sbatch "
                "--batch 32\n"
                "  memsim outcomes",
    .rows = rows,
    .command_follows = true,
};

/* The GPUs of the job are those that it asks Slurm for, unless --gpus is given:
 * also --gpus 1. */
static struct admit_options defaults_make(void)
{
    struct admit_options o = {.python = "python3", .job = JOB_DEFAULTS};

    o.job.gpus = 0;
    return o;
}

int cmd_admit(int argc, char **argv)
{
    const struct admit_options defaults = defaults_make();
    struct admit_options o = defaults;
    struct operands operands;
    struct err err = {""};
    struct gpu gpu;
    char **words = NULL;
    size_t count = 0;
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);

    if (status >= 0)
        return status;
    if (job_gpu(&o.job, &gpu, &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    options_word_add(&words, &count, "admit");
    options_words_add(&words, &count, admit_rows, &o, &defaults);
    options_word_add(&words, &count, "--");
    options_words_add(&words, &count, run_rows, &o, &defaults);
    options_word_add(&words, &count, "--");
    for (int i = 0; i < operands.count; i++)
        options_word_add(&words, &count, operands.values[i]);
    python_start(o.python, "admit", words, "Python 3.9 or newer", &err);
    return cmd_fail(CMD_RUN_FAILED, &err);
}
