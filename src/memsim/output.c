/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/output.h"

#include <stdlib.h>
#include <unistd.h>

#include "memsim/cmd.h"
#include "memsim/report.h"

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

static bool use_color(int color)
{
    const char *no_color = getenv("NO_COLOR"); /* no-color.org */

    if (color != COLOR_AUTO)
        return color == COLOR_ALWAYS;
    return isatty(STDERR_FILENO) && !(no_color && *no_color);
}

int output_run(const struct rundir *dir, char *const *command,
               const struct output_options *options, bool *told)
{
    struct report_style style = {.color = use_color(options->color)};
    struct result result;
    struct err err = {""};

    result_init(&result, dir->session, command);
    int status = result.exit_status;
    if (!options->quiet)
        report_summary.write(&result, &style, stderr);
    *told = true;
    if (options->json &&
        report_write(&report_json, &result, options->json, &err)) {
        status = cmd_fail(CMD_RUN_FAILED, &err);
        *told = false;
    }
    result_fini(&result);
    return status;
}
