/* SPDX-License-Identifier: Apache-2.0
 * memsim calibrate: measures the operators of this machine's GPU. The work is
 * Python's, in the user's environment: lib/memsim/calibrate.py. */
#include "memsim/cli/cmd.h"

#include <stdint.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/cli/python_start.h"

#define SCRIPT      "calibrate.py"
#define MINUTES     20
#define MINUTES_MAX 1440
#define SHAPES      20000

struct values {
    const char *output;
    const char *python;
    const char *job;
    double minutes;
    uint32_t shapes;
    bool truth, host, simulated;
};

static const struct option_row rows[] = {
    {"output", 'o', OPTION_STRING, "DIR", offsetof(struct values, output),
     .help = "directory of the tables; those of an earlier run are\n"
             "continued"},
    {"minutes", 0, OPTION_NUMBER, "N", offsetof(struct values, minutes),
     .help = "how long to measure (default 20); 0.5 is half of one"},
    {"shapes", 0, OPTION_COUNT, "N", offsetof(struct values, shapes),
     .help = "how many shapes to measure at most (default 20000)",
     .minimum = 0, .maximum = 10000000},
    {"for", 0, OPTION_STRING, "RUN", offsetof(struct values, job),
     .help = "measure the shapes of this recording (run -o) first,\n"
             "those that take most of its time before others, and\n"
             "say how much of it is measured; --shapes 0 measures\n"
             "nothing else"},
    {"truth", 0, OPTION_FLAG, NULL, offsetof(struct values, truth),
     .help = "run example models too, and write their peaks and step\n"
             "times, the context's memory and the workspace's"},
    {"host", 0, OPTION_FLAG, NULL, offsetof(struct values, host),
     .help = "measure what launches and other calls of the driver\n"
             "take of this machine's CPU, too"},
    {"simulated", 0, OPTION_FLAG, NULL, offsetof(struct values, simulated),
     .help = "in a command of `memsim run', measure its simulated\n"
             "GPU to try the tables; they say so"},
    {"python", 0, OPTION_STRING, "PYTHON", offsetof(struct values, python),
     .help = "Python with PyTorch (default python3)"},
    {0},
};

static const struct options options = {
    .command = "memsim calibrate",
    .operands = "",
    .summary = "Measures the operators of this machine's GPU with PyTorch. "
               "Writes tables that\n`memsim fit' reads.",
    .examples = "  memsim calibrate --minutes 30 -o mine\n"
                "  memsim calibrate --for RUN --minutes 0.5 -o mine\n"
                "  memsim fit mine/*.csv -o mine.json\n"
                "  memsim run --fit mine.json -- python train.py",
    .rows = rows,
};

/* The words of the options that were given, at TO. */
static void add_words(const struct values *v, char **to)
{
    if (v->truth)
        *to++ = "--truth";
    if (v->host)
        *to++ = "--host";
    if (v->job) {
        *to++ = "--for";
        *to = (char *)v->job;
    }
}

int cmd_calibrate(int argc, char **argv)
{
    struct values v = {.python = "python3", .minutes = MINUTES,
                       .shapes = SHAPES};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &v, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (getenv("MEMSIM") && !v.simulated)
        return cmd_fail(CMD_FAILED,
                        (err_set(&err, "there is no GPU to measure in a "
                                       "command of `memsim run`: memsim made "
                                       "its times; start it without"),
                         &err));
    if (operands.count) {
        err_set(&err, "'%s': it takes no argument", operands.values[0]);
        return cmd_usage(&options, CMD_USAGE, &err);
    }
    if (!(v.minutes > 0) || v.minutes > MINUTES_MAX) {
        err_set(&err, "--minutes: more than 0, and at most %d", MINUTES_MAX);
        return cmd_usage(&options, CMD_USAGE, &err);
    }
    if (!v.output) {
        err_set(&err, "no -o DIR given, where the tables go");
        return cmd_usage(&options, CMD_USAGE, &err);
    }
    char *minutes = xasprintf("%g", v.minutes);
    char *shapes = xasprintf("%u", v.shapes);
    char *words[11] = {"--output", (char *)v.output, "--minutes",
                       minutes,    "--shapes",       shapes};
    add_words(&v, words + 6);
    python_start(v.python, SCRIPT, words, "PyTorch", &err);
    free(minutes);
    free(shapes);
    return cmd_fail(CMD_FAILED, &err);
}
