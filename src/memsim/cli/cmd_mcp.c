/* SPDX-License-Identifier: Apache-2.0
 * memsim mcp: memsim's answers for coding agents. The work is Python's, in the
 * user's environment: lib/memsim/mcp_server.py. */
#include "memsim/cli/cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/run/spawn.h"

#define SCRIPT "mcp_server.py"

struct values {
    const char *python;
};

static const struct option_row rows[] = {
    {"python", 0, OPTION_STRING, "PYTHON", offsetof(struct values, python),
     .help = "Python with the package mcp (default python3)"},
    {0},
};

static const struct options options = {
    .command = "memsim mcp",
    .operands = "",
    .summary = "Serves coding agents over stdin and stdout (Model Context "
               "Protocol): tools that\nrun a command, report on a run, advise "
               "and compare, with bounded answers.\nIt needs the Python "
               "package mcp.",
    .examples = "  pip install mcp\n"
                "  memsim mcp --python .venv/bin/python",
    .rows = rows,
};

/* This program's path, in PATH. Returns 0 or -1. */
static int own_path(char *path, size_t size, struct err *err)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);

    if (length < 0)
        return err_set(err, "/proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    return 0;
}

int cmd_mcp(int argc, char **argv)
{
    struct values v = {.python = "python3"};
    struct operands operands;
    struct err err = {""};
    char libraries[PATH_MAX], own[PATH_MAX];
    int status = cmd_start(&options, argc, argv, &v, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (operands.count) {
        err_set(&err, "'%s': it takes no argument", operands.values[0]);
        return cmd_usage(&options, CMD_USAGE, &err);
    }
    if (own_path(own, sizeof own, &err) ||
        spawn_library_dir(getenv("MEMSIM_LIBDIR"), libraries, sizeof libraries,
                          &err))
        return cmd_fail(CMD_FAILED, &err);
    char *script = xasprintf("%s/" SCRIPT, libraries);
    char *const words[] = {(char *)v.python, script, own, NULL};
    execvp(v.python, words);
    err_set(&err, "%s: %s; --python names one that has the package mcp",
            v.python, strerror(errno));
    free(script);
    return cmd_fail(CMD_FAILED, &err);
}
