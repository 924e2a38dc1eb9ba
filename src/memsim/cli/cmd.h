/* SPDX-License-Identifier: Apache-2.0
 * The subcommands. Each cmd_X gets its own arguments (argv[0] is the
 * subcommand's name) and returns memsim's exit status; they and main are the
 * only ones that print, read the environment and exit. */
#ifndef MEMSIM_MEMSIM_CLI_CMD_H
#define MEMSIM_MEMSIM_CLI_CMD_H

#include "common/base/err.h"
#include "common/base/options.h"
#include "common/base/status.h"

int cmd_run(int argc, char **argv);
int cmd_emulate(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_fit_batch(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_search(int argc, char **argv);
int cmd_admit(int argc, char **argv);
int cmd_outcomes(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_gpus(int argc, char **argv);
int cmd_clusters(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_mcp(int argc, char **argv);

/* Who wants to see the options of each subcommand, not to run it: cmd_start
 * then calls VISIT and has the command return. NULL: nobody. */
struct cmd_visitor {
    void (*visit)(const struct options *options, void *context);
    void *context;
};
extern const struct cmd_visitor *cmd_visitor;

/* Starts every subcommand: reads its options (see options_parse) and prints
 * the help or the usage error. Returns -1 where the command is to go on, else
 * the status to exit with; that of a usage error is USAGE_STATUS. */
int cmd_start(const struct options *options, int argc, char **argv,
              void *values, struct operands *operands, int usage_status);

/* The same for what the table cannot tell, a missing operand say: prints ERR
 * and "Try ..."; returns STATUS. */
int cmd_usage(const struct options *options, int status, const struct err *err);

/* memsim's own command line: "memsim" and ARGV, NULL-terminated. The caller
 * frees the list; its words are ARGV's. */
char **cmd_invocation(int argc, char **argv);

/* Prints "memsim: note: ..." to stderr, with what a terminal would obey quoted:
 * for what names a file, a command or a setting. */
void cmd_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints ERR as "memsim: ..." to stderr; returns STATUS. */
int cmd_fail(int status, const struct err *err);

struct job;

/* Finds JOB's GPU and looks whether its command can be run; prints what is
 * wrong, or worth a note. Returns 0 or memsim's exit status. */
int cmd_check_job(struct job *job);

#endif
