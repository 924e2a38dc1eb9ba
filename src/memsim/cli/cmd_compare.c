/* SPDX-License-Identifier: Apache-2.0
 * memsim compare: several runs side by side. */
#include <stdlib.h>

#include "common/base/file_write.h"
#include "common/base/xmalloc.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/compare_output.h"
#include "memsim/study/input_run.h"

struct compare_options {
    struct compare_output output;
};

static const struct option_row rows[] = {
    COMPARE_OUTPUT_ROWS(struct compare_options, output),
    {0},
};

static const struct options options = {
    .command = "memsim compare",
    .operands = "RUN RUN...",
    .summary =
        "Shows runs side by side: the verdict, the peaks, the step time and "
        "the smallest\nGPU of the catalogue with enough memory. RUN is a "
        "directory of `memsim run -o'\nor a file of `memsim run --json'. "
        "`memsim diff' shows two runs in detail.",
    .examples = "  memsim compare --csv runs.csv base.json batch16.json out",
    .rows = rows,
    .wanted = "give the runs to compare",
    .operands_min = 1,
};

static int runs_report(const struct compare_options *o, struct input_run *runs,
                       size_t count, struct err *err)
{
    static char title[] = "run";
    char *titles[] = {title};
    struct compare_report r = {.titles = titles, .title_count = 1};
    char **names = xcalloc(count + 1, sizeof *names);
    struct prices prices;

    r.rows = xcalloc(count + 1, sizeof *r.rows);
    for (size_t i = 0; i < count; i++) {
        names[i] = (char *)runs[i].name;
        r.rows[r.row_count++] = (struct compare_row){
            .cells = &names[i], .result = &runs[i].file.result};
    }
    int rc = compare_output_terms(&o->output, &r, &prices, err) ||
             compare_output_write(&o->output, &r, err);
    prices_fini(&prices);
    free(r.rows);
    free(names);
    return rc;
}

int cmd_compare(int argc, char **argv)
{
    struct compare_options o = {.output = {.common = {.json = NULL}}};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_USAGE);
    size_t count = 0;

    if (status >= 0)
        return status;
    struct input_run *runs = xcalloc((size_t)operands.count + 1, sizeof *runs);
    int rc = 0;
    for (; !rc && operands.values[count]; count++) {
        runs[count].name = operands.values[count];
        rc = compare_output_check(&o.output, runs[count].name, &err) ||
             input_run_open(&runs[count], &err);
        if (rc)
            break;
    }
    if (!rc)
        rc = runs_report(&o, runs, count, &err);
    for (size_t i = 0; i < count; i++)
        input_run_close(&runs[i]);
    free(runs);
    return rc ? cmd_fail(CMD_FAILED, &err) : CMD_OK;
}
