/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/suggest.h"
#include "memsim/cli/cmd.h"
#include "memsim/run/target.h"

#ifndef MEMSIM_VERSION
#define MEMSIM_VERSION "unknown"
#endif

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", cmd_run, "run a command on a GPU that is not there"},
    {"fit-batch", cmd_fit_batch, "find the largest batch that fits"},
    {"replay", cmd_replay, "play a recording again under other conditions"},
    {"report", cmd_report, "report again on a run that was kept"},
    {"diff", cmd_diff, "tell what changed between two runs"},
    {"trace", cmd_trace, "print a run's trace as text"},
    {"import", cmd_import, "make a recording of profiler traces"},
    {"fit", cmd_fit, "fit cost models to measured operators"},
    {"clusters", cmd_clusters,
     "list the clusters whose collectives are fitted"},
    {"gpus", cmd_gpus, "list the cards that --gpu knows"},
};

#define COMMANDS (sizeof commands / sizeof *commands)

static int help(void)
{
    fputs("Usage: memsim COMMAND [OPTION]... [ARGUMENT]...\n"
          "Tells whether a CUDA training job fits, on a machine without a "
          "GPU.\n\nCommands:\n",
          stdout);
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`memsim COMMAND --help' says more; so does memsim(1).\n", stdout);
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
    fprintf(stderr, "memsim: %s: no such %s", name,
            name[0] == '-' ? "option" : "command");
    if (nearest.count)
        fprintf(stderr, "; did you mean %s?", nearest.names[0]);
    else if (is_program(name))
        fprintf(stderr, "; did you mean `memsim run -- %s'?", name);
    fputs("\nTry `memsim --help'.\n", stderr);
    return CMD_USAGE;
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN); /* writing past RLIMIT_FSIZE is an error */
    if (argc < 2) {
        fputs("memsim: no command given\nTry `memsim --help'.\n", stderr);
        return CMD_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return help();
    if (!strcmp(argv[1], "--version")) {
        puts("memsim " MEMSIM_VERSION);
        return CMD_OK;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return unknown_command(argv[1]);
}
