/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/standard.h"
#include "common/base/suggest.h"
#include "common/base/temporary.h"
#include "common/base/text_clean.h"
#include "common/base/version.h"
#include "memsim/cli/cmd.h"
#include "memsim/run/target.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
    int failed; /* the status where its output cannot be written */
} commands[] = {
    {"run", cmd_run, "run a command on a simulated GPU", CMD_RUN_FAILED},
    {"fit-batch", cmd_fit_batch, "find the largest batch that fits",
     CMD_RUN_FAILED},
    {"replay", cmd_replay, "replay a recording with another GPU or settings",
     CMD_RUN_FAILED},
    {"report", cmd_report, "report again on a kept run", CMD_FAILED},
    {"diff", cmd_diff, "show what changed between two runs", CMD_RUN_FAILED},
    {"compare", cmd_compare, "show several runs side by side", CMD_FAILED},
    {"sweep", cmd_sweep, "run a command with each combination of values",
     CMD_RUN_FAILED},
    {"trace", cmd_trace, "print a run's trace as text", CMD_FAILED},
    {"import", cmd_import, "make a recording from profiler traces", CMD_FAILED},
    {"fit", cmd_fit, "fit cost models to measured times of operators",
     CMD_FAILED},
    {"clusters", cmd_clusters, "list the clusters that --cluster accepts",
     CMD_FAILED},
    {"gpus", cmd_gpus, "list the GPUs that --gpu accepts", CMD_FAILED},
    {"doctor", cmd_doctor, "check this machine for what memsim needs",
     CMD_FAILED},
};

#define COMMANDS (sizeof commands / sizeof *commands)

static int help(void)
{
    fputs("Usage: memsim COMMAND [OPTION]... [ARGUMENT]...\n"
          "Tells whether a CUDA training job fits in GPU memory and how long "
          "a step takes,\non a machine without a GPU.\n\nCommands:\n",
          stdout);
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`memsim COMMAND --help' lists the options of COMMAND; see also "
          "memsim(1).\n",
          stdout);
    return CMD_OK;
}

static bool is_program(const char *name)
{
    struct err err = {""};

    return target_check(name, getenv("PATH"), &err) == TARGET_OK;
}

static int unknown_command(const char *name)
{
    struct suggest nearest;

    suggest_start(&nearest, name, 1);
    for (size_t i = 0; i < COMMANDS; i++)
        suggest_offer(&nearest, commands[i].name);
    char shown[256];
    text_quote(shown, sizeof shown, name);
    fprintf(stderr, "memsim: %s: no such %s", shown,
            name[0] == '-' ? "option" : "command");
    if (nearest.count)
        fprintf(stderr, "; did you mean %s?", nearest.names[0]);
    else if (is_program(name))
        fprintf(stderr, "; did you mean `memsim run -- %s'?", shown);
    fputs("\nTry `memsim --help'.\n", stderr);
    return CMD_USAGE;
}

/* STATUS, or FAILED where not all that was printed was written. */
static int finish(int status, int failed)
{
    struct err err = {""};

    if (!standard_finish(&err) || status == failed)
        return status;
    return cmd_fail(failed, &err);
}

int main(int argc, char **argv)
{
    standard_hold();
    temporary_handle_signals();
    if (argc < 2) {
        fputs("memsim: no command given\nTry `memsim --help'.\n", stderr);
        return CMD_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return finish(help(), CMD_FAILED);
    if (!strcmp(argv[1], "--version")) {
        printf("memsim %s\n", version_text());
        return finish(CMD_OK, CMD_FAILED);
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return finish(commands[i].run(argc - 1, argv + 1),
                          commands[i].failed);
    return unknown_command(argv[1]);
}
