/* SPDX-License-Identifier: Apache-2.0
 * memsim fit-batch: the largest batch with which a command fits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/report/text/batch_report.h"
#include "memsim/run/batch_cache.h"
#include "memsim/run/ended.h"
#include "memsim/run/warm.h"
#include "memsim/study/batch_find.h"
#include "memsim/cli/cmd.h"
#include "memsim/run/job_start.h"
#include "memsim/cli/output.h"
#include "memsim/cli/quiet_job.h"
#include "memsim/run/spawn.h"

#define BATCHES_MAX 1000000000
#define FIT_JOBS    256

struct fit_options {
    struct job_options job;
    struct launch_options launch;
    uint32_t from, to, multiple, steps, jobs, limit_s;
    const char *cache;
    bool no_cache, quiet;
    const char *json;
};

#define ROW(field) .offset = offsetof(struct fit_options, field)

static const struct option_row rows[] = {
    {"from", 0, OPTION_COUNT, "N", ROW(from), .minimum = 1,
     .maximum = BATCHES_MAX, .group = "Search",
     .help = "smallest batch to try (default 1)"},
    {"to", 0, OPTION_COUNT, "N", ROW(to), .minimum = 1, .maximum = BATCHES_MAX,
     .help = "largest batch to try (default 65536)"},
    {"multiple-of", 0, OPTION_COUNT, "N", ROW(multiple), .minimum = 1,
     .maximum = BATCHES_MAX, .help = "try only multiples of N (default 1)"},
    {"steps", 0, OPTION_COUNT, "N", ROW(steps), .minimum = 1,
     .maximum = UINT32_MAX,
     .help = "the job will run N steps: a batch with which memory\n"
             "grows and runs out before does not fit"},
    {"jobs", 'j', OPTION_COUNT, "N", ROW(jobs), .minimum = 1,
     .maximum = FIT_JOBS,
     .help = "run N batches at a time, each on its part of this\n"
             "machine's CPUs: the same batches, and some that may\n"
             "turn out not to be needed (default 1)"},
    TRIAL_ROWS(struct fit_options, limit_s),
    {"cache", 0, OPTION_STRING, "DIR", ROW(cache),
     .help = "keep results in this directory (default:\n"
             "memsim/fit-batch in $XDG_CACHE_HOME or ~/.cache)"},
    {"no-cache", 0, OPTION_FLAG, NULL, ROW(no_cache),
     .help = "run every batch again, and keep no results"},
    {"json", 0, OPTION_STRING, "FILE", ROW(json), .group = "Output",
     .help = "write all figures as JSON; - is stdout"},
    {"quiet", 'q', OPTION_FLAG, NULL, ROW(quiet),
     .help = "print only the largest batch"},
    JOB_ROWS(struct fit_options, job),
    LAUNCH_ROWS(struct fit_options, launch),
    {0},
};

static const struct options options = {
    .command = "memsim fit-batch",
    .operands = "[--] COMMAND [ARGUMENT]...",
    .summary =
        "Finds the largest batch with which COMMAND fits in GPU memory. Runs "
        "COMMAND as\n`memsim run' does, with a number in place of each {} in "
        "its arguments. The next\nnumber comes from the peaks of the last two. "
        "COMMAND should do two or three\nsteps and end; six show whether "
        "memory grows. Its output is shown only if it\nfails for another "
        "reason than memory.\n"
        "\nExit status:\n"
        "    0  a batch was found\n"
        "  120  not even the smallest batch fits\n"
        "  125  memsim failed, or COMMAND failed for another reason than "
        "memory",
    .examples = "  memsim fit-batch --gpu l4 -- python train.py --batch {}",
    .rows = rows,
    .wanted = "no command given",
    .operands_min = 1,
    .command_follows = true,
};

static int status_of(const struct batch_report *r)
{
    if (r->signal)
        return ended_by(r->signal);
    if (r->outcome_count &&
        batch_verdict_ends(r->outcomes[r->outcome_count - 1].verdict))
        return CMD_RUN_FAILED;
    return batch_search_largest(&r->search) ? CMD_OK : CMD_RUN_OOM;
}

static FILE *summary_stream(const struct fit_options *o)
{
    return o->json && !strcmp(o->json, "-") ? stderr : stdout;
}

static int write_reports(const struct batch_find *f,
                         const struct fit_options *o, struct err *err)
{
    const struct batch_report *r = &f->report;
    FILE *out = summary_stream(o);

    if (o->quiet) {
        if (batch_search_largest(&r->search) && out == stdout)
            fprintf(out, "%" PRIu64 "\n", batch_search_largest(&r->search));
    } else {
        batch_write_conclusion(r, out);
    }
    if (output_summary_check(out, err) ||
        (o->json && report_write(&batch_report_json, r, o->json, err)))
        return CMD_RUN_FAILED;
    return r->result.exit_status;
}

/* Where the lines of a search go. */
struct fit_view {
    bool live;   /* a terminal shows which batch is running */
    FILE *lines; /* where each outcome goes, as it comes; NULL: nowhere */
    bool begun;
};

static void view_begin(struct fit_view *v)
{
    if (!v->begun && v->lines)
        batch_write_heading(v->lines);
    v->begun = true;
}

static void view_runs(void *context, uint64_t batch)
{
    struct fit_view *v = context;

    if (!v->live)
        return;
    view_begin(v);
    if (batch)
        fprintf(stderr, "  %8" PRIu64 "  ...", batch);
    else
        fputs("\r\033[K", stderr);
}

static void view_outcome(void *context, const struct batch_outcome *outcome)
{
    struct fit_view *v = context;

    view_begin(v);
    if (!v->lines)
        return;
    batch_write_outcome(outcome, v->lines);
    fflush(v->lines); /* a pipe has a buffer, and the next run takes long */
}

static void view_failed(void *context, int output)
{
    (void)context;
    quiet_show(output);
}

static char *cache_find(const struct fit_options *o)
{
    if (o->no_cache)
        return NULL;
    return o->cache ? xstrdup(o->cache)
                    : batch_cache_directory(getenv("XDG_CACHE_HOME"),
                                            getenv("HOME"));
}

static int find_largest(const struct fit_options *o, const struct job *job)
{
    bool terminal = isatty(STDERR_FILENO);
    struct fit_view view = {.live = !o->quiet && terminal,
                            .lines = o->quiet   ? NULL
                                     : terminal ? stderr
                                                : summary_stream(o)};
    struct batch_find f = {
        .job = *job,
        .launch = o->launch,
        .steps = o->steps,
        .jobs = o->jobs,
        .watch = {view_runs, view_outcome, view_failed, &view},
        .report = {.result = {.command = job->command, .gpu = job->gpu},
                   .limit_s = o->limit_s}};
    struct err err = {""};
    int status = CMD_RUN_FAILED;

    if (batch_search_init(&f.report.search, o->from, o->to, o->multiple))
        err_set(&err, "--to: there is no multiple of %u from %u to %u",
                o->multiple, o->from, o->to);
    else if ((f.programs = job_programs(&err))) {
        f.report.search.capacity_bytes = batch_capacity(job);
        f.cache = cache_find(o);
        warm_begin();
        status = batch_find_run(&f, &err);
        warm_end();
        f.report.result.exit_status = status ? status : status_of(&f.report);
        if (!status)
            status = write_reports(&f, o, &err);
    }
    if (err.text[0])
        cmd_fail(status, &err);
    batch_find_fini(&f);
    return status;
}

static int check_place(char *const *command, struct err *err)
{
    if (batch_command_has_place(command))
        return 0;
    return err_set(err,
                   "no {} in the command; write it where the batch goes, as "
                   "in `python train.py --batch {}'");
}

int cmd_fit_batch(int argc, char **argv)
{
    struct fit_options o = {
        .job = JOB_DEFAULTS, .from = 1, .to = BATCH_FIND_TO, .multiple = 1};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);

    if (status >= 0)
        return status;
    struct job job = {.options = o.job,
                      .command = operands.values,
                      .trace_limit_bytes = JOB_TRACE_LIMIT,
                      .limit_s = o.limit_s};
    if (check_place(operands.values, &err) ||
        quiet_check_outer("fit-batch", &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    status = cmd_check_job(&job);
    return status ? status : find_largest(&o, &job);
}
