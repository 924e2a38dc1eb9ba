/* SPDX-License-Identifier: Apache-2.0
 * memsim diff: what changed between two runs. */
#include <stdlib.h>

#include "common/base/file_write.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/diff_profile.h"
#include "memsim/cli/diff_truth.h"
#include "memsim/cli/output.h"
#include "memsim/study/diff_study.h"
#include "memsim/study/profile_diff.h"

struct diff_options {
    const char *fail_above, *fail_slower;
    const char *corrections;
    bool peaks, truth;
    struct output_options output;
};

#define ROW(field) .offset = offsetof(struct diff_options, field)

static const struct option_row rows[] = {
    {"fail-above", 0, OPTION_STRING, "SIZE|PERCENT", ROW(fail_above),
     .group = "Comparison",
     .help = "exit with 121 if a peak grew by more than this, or if\n"
             "AFTER failed"},
    {"fail-slower", 0, OPTION_STRING, "PERCENT", ROW(fail_slower),
     .help = "exit with 121 if a step takes longer by more than this"},
    {"peaks", 0, OPTION_FLAG, NULL, ROW(peaks),
     .help = "compare only the peaks, for runs without modules\n"
             "(--no-modules)"},
    {"truth", 0, OPTION_FLAG, NULL, ROW(truth),
     .help = "the second is the same script on a real GPU, by `memsim\n"
             "run --real': compare figures, blocks and kernels"},
    {"save-corrections", 0, OPTION_STRING, "FILE.json", ROW(corrections),
     .help = "with --truth: write what was learnt of the GPU, for\n"
             "`memsim run --corrections'"},
    OUTPUT_JSON_ROW(struct diff_options, output),
    {"markdown", 0, OPTION_STRING, "FILE", ROW(output.markdown),
     .help = "write the comparison as Markdown, for a pull request's\n"
             "comment; - is standard output"},
    OUTPUT_SUMMARY_ROWS(struct diff_options, output),
    {0},
};

static const struct options options = {
    .command = "memsim diff",
    .operands = "BEFORE AFTER|ESTIMATE TRACE.json[.gz]",
    .summary =
        "Shows what changed between two runs: the verdict, the peaks, and the "
        "memory at\nthe peak by category and by module. BEFORE and AFTER are "
        "directories of\n`memsim run -o' or files of `memsim run --json'.\n\n"
        "If the second is a profiler's trace, or a directory of `memsim "
        "import', the\nsteps are compared: the operations of each operator, "
        "and their times.\n\n"
        "Exit status:\n"
        "    0  no limit was exceeded\n"
        "  121  a limit was exceeded (--fail-above, --fail-slower)\n"
        "  125  memsim failed",
    .examples =
        "  memsim diff --fail-above 2% before after.json\n"
        "  memsim diff run/ profile.json.gz",
    .rows = rows,
    .wanted = "give two runs, BEFORE and AFTER",
    .operands_min = 2,
    .operands_max = 2,
};

static int diff_report_write(const struct diff_options *o,
                             struct diff_report *r, struct err *err)
{
    const char *json = o->output.json, *markdown = o->output.markdown;
    FILE *out = output_summary_stream(&o->output);
    const struct report_style style = {.color = output_color(&o->output, out),
                                       .depth = o->output.depth,
                                       .top = o->output.top};

    if (!o->output.quiet)
        diff_report_text(r, &style, out);
    else if (r->past || r->slower)
        fprintf(stderr, "memsim: %s\n", r->words);
    if (markdown && file_write(diff_report_markdown, r, markdown, err))
        return -1;
    return json ? file_write(diff_report_json, r, json, err) : 0;
}

static int diff_sides(const struct diff_options *o, const char *before,
                      const char *after, struct err *err)
{
    const struct diff_question question = {before, after, o->fail_above,
                                           o->fail_slower, o->peaks};
    struct diff_study d;
    int status = CMD_RUN_FAILED;

    if (diff_study_open(&d, &question, err))
        return status;
    if (!diff_report_write(o, &d.report, err))
        status = d.report.past || d.report.slower ? CMD_RUN_OVER_LIMIT : CMD_OK;
    diff_study_close(&d);
    return status;
}

/* Whether --truth goes with the other options. Returns 0 or -1. */
static int check_truth(const struct diff_options *o, struct err *err)
{
    if (!o->truth)
        return o->corrections ? err_set(err, "--save-corrections needs --truth")
                              : 0;
    return o->fail_above || o->fail_slower || o->peaks || o->output.markdown ||
                   o->output.json
               ? err_set(err, "--truth goes with --save-corrections and "
                              "--quiet alone")
               : 0;
}

int cmd_diff(int argc, char **argv)
{
    struct diff_options o = {.output = {.json = NULL}};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);

    if (status >= 0)
        return status;
    if (check_truth(&o, &err) ||
        (o.truth && diff_truth(operands.values[0], operands.values[1],
                               o.corrections, &o.output, &err)))
        return cmd_fail(CMD_RUN_FAILED, &err);
    if (o.truth)
        return CMD_OK;
    if (diff_is_profile(operands.values[1])) {
        if (o.fail_above || o.fail_slower || o.peaks || o.output.markdown)
            err_set(&err, "%s: a profile has no memory and sets no limit: only "
                          "--json and --quiet go with it",
                    operands.values[1]);
        else
            status = diff_profile(operands.values[0], operands.values[1],
                                  &o.output, &err);
        return err.text[0] ? cmd_fail(CMD_RUN_FAILED, &err) : status;
    }
    if (output_check_input(&o.output, operands.values[0], &err) ||
        output_check_input(&o.output, operands.values[1], &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    status = diff_sides(&o, operands.values[0], operands.values[1], &err);
    return err.text[0] ? cmd_fail(status, &err) : status;
}
