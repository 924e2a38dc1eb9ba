/* SPDX-License-Identifier: Apache-2.0
 * memsim mcp: memsim's answers for coding agents. The work is Python's, in the
 * user's environment: lib/memsim/mcp_server.py. */
#include "memsim/cli/cmd.h"

#include "memsim/cli/python_start.h"

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

int cmd_mcp(int argc, char **argv)
{
    struct values v = {.python = "python3"};
    struct operands operands;
    struct err err = {""};
    char *const none[] = {NULL};
    int status = cmd_start(&options, argc, argv, &v, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (operands.count) {
        err_set(&err, "'%s': it takes no argument", operands.values[0]);
        return cmd_usage(&options, CMD_USAGE, &err);
    }
    python_start(v.python, SCRIPT, none, "the package mcp", &err);
    return cmd_fail(CMD_FAILED, &err);
}
