/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/run/job.h"

const struct cmd_visitor *cmd_visitor;

int cmd_start(const struct options *options, int argc, char **argv,
              void *values, struct operands *operands, int usage_status)
{
    struct err err = {""};

    if (cmd_visitor) {
        cmd_visitor->visit(options, cmd_visitor->context);
        return CMD_OK;
    }
    switch (options_parse(options, argc, argv, values, operands, &err)) {
    case OPTIONS_OK:
        return -1;
    case OPTIONS_HELP:
        options_help(options, stdout);
        return CMD_OK;
    case OPTIONS_ERROR:
        break;
    }
    return cmd_usage(options, usage_status, &err);
}

char **cmd_invocation(int argc, char **argv)
{
    static char name[] = "memsim";
    char **words = xcalloc((size_t)argc + 2, sizeof *words);

    words[0] = name;
    memcpy(words + 1, argv, (size_t)argc * sizeof *words);
    return words;
}

int cmd_usage(const struct options *options, int status, const struct err *err)
{
    fprintf(stderr, "memsim: %s\nTry `%s --help'.\n", err->text,
            options->command);
    return status;
}

void cmd_note(const char *format, ...)
{
    struct err err = {""};
    char text[sizeof err.text];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    err_set(&err, "%s", text); /* quotes it */
    fprintf(stderr, "memsim: note: %s\n", err.text);
}

int cmd_fail(int status, const struct err *err)
{
    fprintf(stderr, "memsim: %s\n", err->text);
    return status;
}

static void note_text(const char *text)
{
    cmd_note("%s", text);
}

int cmd_check_job(struct job *job)
{
    struct err err = {""};

    job->note = note_text;
    if (job_gpu(&job->options, &job->gpu, &err) ||
        job_host_limit(&job->options, &job->host_limit_bytes, &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    int status = job_check(job->command[0], &err);
    if (status)
        return cmd_fail(status, &err);
    if (err.text[0])
        fprintf(stderr, "memsim: note: %s\n", err.text);
    return CMD_OK;
}
