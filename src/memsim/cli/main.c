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
#include "memsim/cli/commands.h"
#include "memsim/run/launch.h"
#include "memsim/run/target.h"

static int print_help(void)
{
    fputs("Usage: memsim COMMAND [OPTION]... [ARGUMENT]...\n"
          "Tells whether a CUDA training job fits in GPU memory and how long "
          "a step takes,\non a machine without a GPU.\n\nCommands:\n",
          stdout);
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            printf("  %-10s %s\n", c->name, c->summary);
    fputs("\n`memsim help COMMAND' lists the options of COMMAND; see also "
          "memsim(1).\n",
          stdout);
    return CMD_OK;
}

static int print_version(void)
{
    printf("memsim %s\n", version_text());
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
    for (const struct command *c = commands; c->name; c++)
        suggest_offer(&nearest, c->name);
    suggest_offer(&nearest, "help");
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

/* `memsim help [COMMAND]' */
static int help_on(char *name)
{
    char *const words[] = {name, (char *)"--help", NULL};

    if (!name)
        return print_help();
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(name, c->name))
            return c->run(2, (char **)words);
    return unknown_command(name);
}

static const struct word {
    const char *text;
    int (*say)(void);
} words[] = {
    {"--help", print_help},       {"-h", print_help},
    {"--version", print_version}, {"-V", print_version},
    {"version", print_version},   {NULL, NULL},
};

/* STATUS, or FAILED where not all that was printed was written. */
static int finish_output(int status, int failed)
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
        print_help();
        return finish_output(CMD_USAGE, CMD_FAILED);
    }
    for (const struct word *w = words; w->text; w++)
        if (!strcmp(argv[1], w->text))
            return finish_output(w->say(), CMD_FAILED);
    if (!strcmp(argv[1], "help"))
        return finish_output(help_on(argv[2]), CMD_FAILED);
    if (!strcmp(argv[1], LAUNCH_COMMAND)) /* memsim run's own */
        return launch_run(argc - 1, argv + 1);
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(argv[1], c->name))
            return finish_output(c->run(argc - 1, argv + 1), c->failed);
    return unknown_command(argv[1]);
}
