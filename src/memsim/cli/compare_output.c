/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/compare_output.h"

#include <string.h>

#include "common/base/file_write.h"

int compare_output_check(const struct compare_output *o, const char *input,
                         struct err *err)
{
    struct output_options csv = {.markdown = o->csv};

    if (file_write_check("--csv", o->csv, input, err))
        return -1;
    return output_check_input(&o->common, input, err) ||
                   output_check_input(&csv, input, err)
               ? -1
               : 0;
}

int compare_output_write(const struct compare_output *o,
                         const struct compare_report *report, struct err *err)
{
    bool data = (o->csv && !strcmp(o->csv, "-")) ||
                (o->common.markdown && !strcmp(o->common.markdown, "-"));
    FILE *out = data ? stderr : stdout;
    const struct report_style style = {.color = output_color(&o->common, out)};

    if (!o->common.quiet)
        compare_report_text(report, &style, out);
    if (o->csv && file_write(compare_report_csv, report, o->csv, err))
        return -1;
    if (o->common.markdown &&
        file_write(compare_report_markdown, report, o->common.markdown, err))
        return -1;
    return output_summary_check(out, err);
}
