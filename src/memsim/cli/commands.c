/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/commands.h"

#include <stddef.h>

#include "memsim/cli/cmd.h"

const struct command commands[] = {
    {"run", cmd_run, "run a command on a simulated GPU", CMD_RUN_FAILED},
    {"emulate", cmd_emulate, "run one rank on a real GPU, without its peers",
     CMD_RUN_FAILED},
    {"fit-batch", cmd_fit_batch, "find the largest batch that fits",
     CMD_RUN_FAILED},
    {"replay", cmd_replay, "replay a recording with another GPU or settings",
     CMD_RUN_FAILED},
    {"report", cmd_report, "report again on a kept run", CMD_FAILED},
    {"diff", cmd_diff, "show what changed between two runs", CMD_RUN_FAILED},
    {"compare", cmd_compare, "show several runs side by side", CMD_FAILED},
    {"sweep", cmd_sweep, "run a command with each combination of values",
     CMD_RUN_FAILED},
    {"search", cmd_search, "find the best configuration of a job",
     CMD_RUN_FAILED},
    {"admit", cmd_admit, "predict a Slurm job, and submit it if it fits",
     CMD_RUN_FAILED},
    {"outcomes", cmd_outcomes, "compare such predictions with what happened",
     CMD_FAILED},
    {"trace", cmd_trace, "print a run's trace as text", CMD_FAILED},
    {"import", cmd_import, "make a recording from profiler traces", CMD_FAILED},
    {"fit", cmd_fit, "fit cost models to measured times of operators",
     CMD_FAILED},
    {"calibrate", cmd_calibrate, "measure the operators of this machine's GPU",
     CMD_FAILED},
    {"clusters", cmd_clusters, "list the clusters that --cluster accepts",
     CMD_FAILED},
    {"gpus", cmd_gpus, "list the GPUs that --gpu accepts", CMD_FAILED},
    {"doctor", cmd_doctor, "check this machine for what memsim needs",
     CMD_FAILED},
    {"completion", cmd_completion, "print the completions of a shell",
     CMD_FAILED},
    {"mcp", cmd_mcp, "serve coding agents (Model Context Protocol)",
     CMD_FAILED},
    {NULL, NULL, NULL, 0},
};
