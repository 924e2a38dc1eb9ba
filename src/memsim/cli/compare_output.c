/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/compare_output.h"

#include <string.h>

#include "common/base/file_write.h"

/* An output and what writes it. */
struct target {
    const char *option, *path;
    void (*write)(const void *report, FILE *out);
};

#define TARGETS 4

static void list_targets(const struct compare_output *o,
                         struct target list[TARGETS])
{
    list[0] = (struct target){"--json", o->common.json, compare_report_json};
    list[1] = (struct target){"--chart", o->chart, compare_report_chart};
    list[2] = (struct target){"--csv", o->csv, compare_report_csv};
    list[3] = (struct target){"--markdown", o->common.markdown,
                              compare_report_markdown};
}

static bool is_stdout(const struct target *t)
{
    return t->path && !strcmp(t->path, "-");
}

/* The two are one file, or both standard output. */
static int check_pair(const struct target *a, const struct target *b,
                      struct err *err)
{
    if (is_stdout(a) && is_stdout(b))
        return err_set(err, "%s and %s: only one of them can be -", a->option,
                       b->option);
    if (a->path && b->path && !is_stdout(a) && !strcmp(a->path, b->path))
        return err_set(err, "%s and %s: both are %s", a->option, b->option,
                       a->path);
    return 0;
}

int compare_output_check(const struct compare_output *o, const char *input,
                         struct err *err)
{
    struct target list[TARGETS];

    list_targets(o, list);
    for (size_t i = 0; i < TARGETS; i++) {
        /* of these the check knows the names of a run's files */
        struct output_options as = {.markdown = list[i].path};
        if (file_write_check(list[i].option, list[i].path, input, err) ||
            output_check_input(&as, input, err))
            return -1;
        for (size_t j = 0; j < i; j++)
            if (check_pair(&list[j], &list[i], err))
                return -1;
    }
    return 0;
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
    for (size_t i = 0; i < TARGETS; i++)
        if (list[i].path &&
            file_write(list[i].write, report, list[i].path, err))
            return -1;
    return output_summary_check(out, err);
}
