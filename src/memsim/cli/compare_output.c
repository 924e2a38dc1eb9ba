/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/compare_output.h"

#include <string.h>

#include "common/base/file_write.h"
#include "memsim/cli/output_files.h"
#include "memsim/report/text/knee.h"
#include "memsim/report/text/scaling.h"

/* An output and what writes it. */
struct target {
    const char *option, *path;
    void (*write)(const void *report, FILE *out);
};

#define TARGETS 5

static void list_targets(const struct compare_output *o,
                         struct target list[TARGETS])
{
    list[0] = (struct target){"--json", o->common.json, compare_report_json};
    list[1] = (struct target){"--chart", o->chart, compare_report_chart};
    list[2] = (struct target){"--csv", o->csv, compare_report_csv};
    list[3] = (struct target){"--markdown", o->common.markdown,
                              compare_report_markdown};
    list[4] = (struct target){"--html", o->html, compare_report_html};
}

static bool is_stdout(const struct target *t)
{
    return t->path && !strcmp(t->path, "-");
}

int compare_output_check(const struct compare_output *o, const char *input,
                         struct err *err)
{
    struct output_target files[TARGETS];
    struct target list[TARGETS];

    list_targets(o, list);
    for (size_t i = 0; i < TARGETS; i++)
        files[i] = (struct output_target){list[i].option, list[i].path, false};
    return output_targets_check(files, TARGETS, err) ||
                   output_targets_check_input(files, TARGETS, input, err)
               ? -1
               : 0;
}

int compare_output_terms(const struct compare_output *o,
                         struct compare_report *report, struct prices *prices,
                         struct err *err)
{
    *prices = (struct prices){0};
    report->terms = (struct compare_terms){.tokens = o->tokens};
    if (!o->price)
        return 0;
    if (!(o->tokens > 0))
        return err_set(err, "--price needs --tokens N: the cost is of N "
                            "tokens, as in --tokens 1e9");
    report->terms.prices = prices;
    return prices_read(prices, o->price, err);
}

int compare_output_write(const struct compare_output *o,
                         const struct compare_report *report, struct err *err)
{
    struct target list[TARGETS];
    bool data = false;

    list_targets(o, list);
    for (size_t i = 0; i < TARGETS; i++)
        data |= is_stdout(&list[i]);
    FILE *out = data ? stderr : stdout;
    const struct report_style style = {.color = output_color(&o->common, out)};

    if (!o->common.quiet)
        compare_report_text(report, &style, out);
    if (!o->common.quiet && report->nodes)
        scaling_write(report, *report->nodes, out);
    if (!o->common.quiet && report->delays)
        knee_write(report, out);
    for (size_t i = 0; i < TARGETS; i++)
        if (list[i].path &&
            file_write(list[i].write, report, list[i].path, err))
            return -1;
    return output_summary_check(out, err);
}
