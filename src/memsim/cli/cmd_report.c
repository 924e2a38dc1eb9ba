/* SPDX-License-Identifier: Apache-2.0
 * memsim report: a run's report again, from its directory. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json_add.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/advice_run.h"
#include "memsim/cli/cmd.h"
#include "memsim/study/input_kind.h"
#include "memsim/study/kept_options.h"
#include "memsim/cli/output.h"
#include "memsim/report/json/schema.h"
#include "memsim/study/run_study.h"

struct report_options {
    struct output_options output;
    bool schema;
};

static const struct option_row rows[] = {
    OUTPUT_ROWS(struct report_options, output),
    {"schema", 0, OPTION_FLAG, NULL, offsetof(struct report_options, schema),
     .group = "Schema",
     .help = "print the JSON Schema of memsim's JSON, and exit"},
    {0},
};

static const struct options options = {
    .command = "memsim report",
    .operands = "DIR",
    .summary = "Reports again on the run that `memsim run -o DIR' kept in DIR.",
    .rows = rows,
    .wanted = "give one directory",
    .operands_max = 1,
};

/* The run of the same command that `memsim run --advice' left beside it. */
static bool open_unlimited(const struct rundir *dir, struct rundir *unlimited)
{
    struct err err = {""};
    char *path = xasprintf("%s" ADVICE_UNLIMITED_END, dir->path);
    int rc = rundir_open(unlimited, path, &err);

    free(path);
    return !rc;
}

/* What PATH is that is no kept run, and what reads it, after ERR. */
static void explain_input(const char *path, struct err *err)
{
    struct stat st;

    /* else the run's message says why */
    if (!input_kind_check(path, INPUT_RUN, err) && !stat(path, &st) &&
        !S_ISDIR(st.st_mode))
        err_set(err, "%s: a file, and no directory of `memsim run -o'", path);
}

/* Returns false where something could not be told. */
static bool run_report(const struct rundir *dir, const struct output_options *o)
{
    struct rundir unlimited;
    struct err err = {""};
    bool told = false;
    char **command = rundir_command(dir, &err);
    bool again = o->study.advice && open_unlimited(dir, &unlimited);
    const struct study_sources sources = {.unlimited =
                                              again ? &unlimited : NULL};

    if (command)
        output_run(dir, &sources, command, o,
                   output_summary_stream(o), &told);
    else
        cmd_fail(CMD_FAILED, &err);
    free(command);
    if (again)
        rundir_close(&unlimited);
    return told;
}

int cmd_report(int argc, char **argv)
{
    struct report_options o = {.output = {.json = NULL}};
    struct operands operands;
    struct rundir dir;
    struct kept_options kept;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (o.schema) {
        json_print(schema_to_json(), stdout);
        return CMD_OK;
    }
    if (!operands.count) {
        err_set(&err, "%s", options.wanted);
        return cmd_usage(&options, CMD_USAGE, &err);
    }
    explain_input(operands.values[0], &err);
    if (err.text[0])
        return cmd_fail(CMD_FAILED, &err);
    if (kept_options_recall(&kept, operands.values[0], false, &o.output.study,
                            &err))
        return cmd_fail(CMD_FAILED, &err);
    bool told = false;
    if (output_check(&o.output, &err) ||
        output_check_input(&o.output, operands.values[0], &err) ||
        rundir_open(&dir, operands.values[0], &err)) {
        cmd_fail(CMD_FAILED, &err);
    } else {
        told = run_report(&dir, &o.output);
        rundir_close(&dir);
    }
    kept_options_fini(&kept);
    return told ? CMD_OK : CMD_FAILED;
}
