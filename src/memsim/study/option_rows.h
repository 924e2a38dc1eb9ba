/* SPDX-License-Identifier: Apache-2.0
 * The options of a study as rows of a command's table. */
#ifndef MEMSIM_MEMSIM_STUDY_OPTION_ROWS_H
#define MEMSIM_MEMSIM_STUDY_OPTION_ROWS_H

#include "common/base/options.h"
#include "memsim/study/options.h"

/* How times are predicted: the rows of an option table whose STRUCTURE has a
 * struct study_options as MEMBER. */
/* clang-format off */
#define STUDY_TIME_ROWS(structure, member)                                     \
    {"cluster", 0, OPTION_STRING, "NAME|FILE.json",                            \
     offsetof(structure, member.cluster), .group = "Step time",                \
     .help = "predict NCCL's collectives on this cluster (`memsim\n"           \
             "clusters' lists them); run and replay take its GPU\n"         \
             "unless --gpu names another"},                                    \
    {"placement", 0, OPTION_STRING, "block|round-robin|FILE",                  \
     offsetof(structure, member.placement),                                    \
     .help = "which node of --cluster each rank is on: they fill\n"            \
             "nodes (default), are dealt out, or are where a line of\n"        \
             "FILE says, NODE or NODE GPU"},                                   \
    {"beside", 0, OPTION_STRING, "RUN", offsetof(structure, member.beside),    \
     .help = "another job at the same time, which `memsim run -o RUN'\n"     \
             "kept: its ranks are behind this job's on --cluster,\n"          \
             "and share its network"},                                         \
    {"link", 0, OPTION_STRING, "LINK=Xx[,LINK=Xx]",                            \
     offsetof(structure, member.link),                                         \
     .help = "links of --cluster that are X times as fast: intra,\n"           \
             "inside a node, and inter, between nodes: inter=2x"},             \
    {"quantile", 0, OPTION_STRING, "Q", offsetof(structure, member.quantile),  \
     .help = "predict collectives at this quantile of measured\n"            \
             "times, 0.5 to 0.99 (default: the mean)"},                        \
    {"stragglers", 0, OPTION_STRING, "PCT%[,SEED]",                            \
     offsetof(structure, member.stragglers),                                   \
     .help = "draw a GPU for each rank, whose speeds differ by PCT%\n"         \
             "(standard deviation): a collective waits for the\n"              \
             "slowest; SEED draws others"},                                    \
    {"delay", 0, OPTION_LIST, "WHAT=AMOUNT[,COND]...",                         \
     offsetof(structure, member.delay),                                        \
     .help = "what if calls came later: ncclAllReduce=2ms, link=2x,\n"         \
             "gpu=1.3x, host=5ms, or a rank died: die=STEP,rank=R;\n"          \
             "COND: rank=R, node=N, every=N, jitter=P%, seed=S,\n"             \
             "from-step=K, to-step=K. May be repeated"},                       \
    {"delay-lib", 0, OPTION_STRING, "FILE.so",                                 \
     offsetof(structure, member.delay_lib),                                    \
     .help = "ask a shared object for delays (memsim_delay.h)"},               \
    {"check-collectives", 0, OPTION_FLAG, NULL,                                \
     offsetof(structure, member.check_collectives),                            \
     .help = "exit with 121 if the ranks do not call the same\n"               \
             "collectives, or one waits for ever"},                            \
    {"fit", 0, OPTION_STRING, "FIT.json", offsetof(structure, member.fit),     \
     .help = "predict operators with this fit, which `memsim fit'\n"           \
             "wrote, in place of the GPU's own"},                              \
    {"scale", 0, OPTION_STRING, "FAMILY=X[,FAMILY=X]...",                      \
     offsetof(structure, member.scale),                                        \
     .help = "multiply the times of operator families: gemm=0.8"},             \
    {"host-speed", 0, OPTION_STRING, "X",                                      \
     offsetof(structure, member.host_speed),                                   \
     .help = "speed of the host relative to this machine (default\n"           \
             "1); with 0 the host takes no time"},                             \
    {"host-times", 0, OPTION_CHOICE, "typical|recorded",                       \
     offsetof(structure, member.host_times),                                   \
     .help = "the host's time before a call: the least of all steps\n"         \
             "(default), or as it was, which is what COMMAND saw"},             \
    {"fail-slower", 0, OPTION_STRING, "PERCENT",                               \
     offsetof(structure, member.fail_slower),                                  \
     .help = "exit with 121 if a step takes longer than in --base\n"           \
             "by more than this"},                                             \
    {"base", 0, OPTION_STRING, "FILE.json", offsetof(structure, member.base),  \
     .help = "--json file of an earlier run, for --fail-slower"}
/* clang-format on */

#endif
