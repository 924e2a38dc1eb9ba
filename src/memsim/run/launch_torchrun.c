/* SPDX-License-Identifier: Apache-2.0
 * The options are those of torch/distributed/run.py, 2.5 to 2.15. */
#include "memsim/run/launch_torchrun.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options that take no value; all others do. */
static const char *const flags[] = {"standalone", "run-path", "no-python",
                                    "module", "m", "help", "h",
                                    "virtual-local-rank"};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Where the options begin; 0: it is not torchrun. */
static int options_start(char **command)
{
    if (!strcmp(base_name(command[0]), "torchrun"))
        return 1;
    if (!strncmp(base_name(command[0]), "python", 6) && command[1] &&
        !strcmp(command[1], "-m") && command[2] &&
        (!strcmp(command[2], "torch.distributed.run") ||
         !strcmp(command[2], "torch.distributed.launch")))
        return 3;
    return 0;
}

/* Whether OPTION, without its dashes and up to "=", is NAME; torchrun takes
 * "_" for "-". */
static bool is_option(const char *option, const char *name)
{
    size_t i = 0;

    for (; name[i]; i++)
        if (option[i] != name[i] && !(option[i] == '_' && name[i] == '-'))
            return false;
    return !option[i] || option[i] == '=';
}

static bool is_flag(const char *option)
{
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (is_option(option, flags[i]))
            return true;
    return false;
}

/* "4", or "2:4", of which all four may come. */
static uint32_t number(const char *text)
{
    const char *colon = strchr(text, ':');
    unsigned long value = strtoul(colon ? colon + 1 : text, NULL, 10);

    return value < UINT32_MAX ? (uint32_t)value : 0;
}

/* The Python of COMMAND: torchrun's lies beside it. */
static char *python_of(char *command)
{
    static char program[PATH_MAX];
    const char *name = base_name(command);

    if (!strncmp(name, "python", 6))
        return command;
    snprintf(program, sizeof program, "%.*spython3", (int)(name - command),
             command);
    return program;
}

/* The rank's command: python, -m where MODULE, and what follows. There is room
 * for both before REST, where torchrun's words are. */
static char **rank_command(char **command, int rest, bool module, bool python)
{
    static char dash_m[] = "-m";
    char *program = python_of(command[0]);

    if (module)
        command[--rest] = dash_m;
    if (python)
        command[--rest] = program;
    return command + rest;
}

bool torchrun_read(struct torchrun *t, char **command)
{
    int i = options_start(command);
    bool module = false, python = true;

    *t = (struct torchrun){.nodes = 1, .local = 1};
    if (!i)
        return false;
    for (; command[i] && command[i][0] == '-'; i++) {
        const char *option = command[i] + strspn(command[i], "-");
        const char *value = strchr(option, '=');

        if (!*option) { /* "--" */
            i++;
            break;
        }
        module = module || is_option(option, "module") ||
                 is_option(option, "m");
        python = python && !is_option(option, "no-python");
        if (is_flag(option))
            continue;
        value = value ? value + 1 : command[++i];
        if (!value)
            return false;
        if (is_option(option, "nnodes"))
            t->nodes = number(value);
        else if (is_option(option, "nproc-per-node"))
            t->local = number(value);
    }
    if (!command[i])
        return false;
    t->command = rank_command(command, i, module, python);
    return true;
}
