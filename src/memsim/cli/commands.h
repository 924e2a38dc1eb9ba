/* SPDX-License-Identifier: Apache-2.0
 * The list of subcommands: main starts them, the help and the completions of
 * shells show them. */
#ifndef MEMSIM_MEMSIM_CLI_COMMANDS_H
#define MEMSIM_MEMSIM_CLI_COMMANDS_H

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary; /* NULL: the help does not list it */
    int failed;          /* the status where its output cannot be written */
};

/* The last one has no name. */
extern const struct command commands[];

#endif
