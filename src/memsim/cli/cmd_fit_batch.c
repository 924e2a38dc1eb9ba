/* SPDX-License-Identifier: Apache-2.0
 * memsim fit-batch: the largest batch with which a command fits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/report/batch_report.h"
#include "memsim/run/batch_cache.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/output.h"
#include "memsim/cli/quiet_job.h"
#include "memsim/run/spawn.h"

#define DEFAULT_TO  65536
#define BATCHES_MAX 1000000000

struct fit_options {
    struct job_options job;
    uint32_t from, to, multiple;
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
    {0},
};

static const struct options options = {
    .command = "memsim fit-batch",
    .operands = "[--] COMMAND [ARGUMENT]...",
    .summary =
        "Finds the largest batch with which COMMAND fits in GPU memory. Runs "
        "COMMAND as\n`memsim run' does, with a number in place of each {} in "
        "its arguments. The next\nnumber comes from the peaks of the last two. "
        "COMMAND should do two or three\nsteps and end. Its output is shown "
        "only if it fails for another reason than\nmemory.\n"
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

struct fit {
    const struct fit_options *options;
    struct job job;
    char *programs; /* memsim's own files */
    char *cache;    /* NULL: nothing is kept */
    bool live;      /* a terminal shows which batch is running */
    FILE *lines;    /* where each outcome goes, as it comes; NULL: nowhere */
    struct batch_report report;
};

/* Runs the job with the command that was filled in. */
static int try_run(struct fit *f, uint64_t batch, struct batch_outcome *o,
                   struct err *err)
{
    struct rundir dir;
    struct result result;

    f->job.output = quiet_output();
    if (f->job.output < 0)
        return err_set(err, "cannot write to a temporary file; set TMPDIR"),
               CMD_RUN_FAILED;
    int status = job_run(&f->job, &dir, err);
    if (!status) {
        result_init(&result, dir.session, f->job.command);
        *o = batch_outcome_make(&result, batch);
        result_fini(&result);
        rundir_remove(&dir);
        if (o->verdict == BATCH_FAILED && !quiet_interrupted())
            quiet_show(f->job.output);
    }
    close(f->job.output);
    return status;
}

/* A cache that cannot be written costs the cache only. */
static void keep(struct fit *f, const char *key, const struct batch_outcome *o)
{
    struct err err = {""};

    if (o->verdict == BATCH_FAILED ||
        !batch_cache_store(f->cache, key, o, &err))
        return;
    fprintf(stderr, "memsim: note: %s\n", err.text);
    free(f->cache);
    f->cache = NULL;
}

static int try_batch(struct fit *f, uint64_t batch, struct batch_outcome *o,
                     struct err *err)
{
    char **command = batch_command(f->report.result.command, batch), *key;
    int status = 0;

    f->job.command = command;
    key = batch_key(&f->job, f->programs, environ);
    if (!f->cache || !batch_cache_load(f->cache, key, o)) {
        if (f->live)
            fprintf(stderr, "  %8" PRIu64 "  ...", batch);
        status = try_run(f, batch, o, err);
        if (f->live)
            fputs("\r\033[K", stderr);
        if (!status && f->cache && !quiet_interrupted())
            keep(f, key, o);
    }
    free(key);
    batch_command_free(command);
    return status;
}

static void note_outcome(struct fit *f, const struct batch_outcome *o)
{
    struct batch_report *r = &f->report;

    xgrow(&r->outcomes, r->outcome_count, &r->outcome_capacity,
          sizeof *r->outcomes);
    r->outcomes[r->outcome_count++] = *o;
    if (!f->lines)
        return;
    if (!f->live && r->outcome_count == 1)
        batch_write_heading(f->lines);
    batch_write_outcome(o, f->lines);
    fflush(f->lines); /* a pipe has a buffer, and the next run takes long */
}

/* Returns 0, or memsim's exit status with ERR set. */
static int search(struct fit *f, struct err *err)
{
    struct batch_search *s = &f->report.search;
    uint64_t batch;

    if (f->live)
        batch_write_heading(stderr);
    while ((batch = batch_search_next(s))) {
        struct batch_outcome o;
        int status = try_batch(f, batch, &o, err);

        if (quiet_interrupted()) {
            f->report.signal = spawn_signal();
            return 0;
        }
        if (status)
            return status;
        note_outcome(f, &o);
        if (o.verdict == BATCH_FAILED)
            return 0;
        batch_search_tell(s, o.verdict == BATCH_FITS, o.peak_allocated_bytes,
                          o.peak_used_bytes);
    }
    return 0;
}

static int status_of(const struct batch_report *r)
{
    if (r->signal)
        return 128 + r->signal;
    if (r->outcome_count &&
        r->outcomes[r->outcome_count - 1].verdict == BATCH_FAILED)
        return CMD_RUN_FAILED;
    return batch_search_largest(&r->search) ? CMD_OK : CMD_RUN_OOM;
}

static FILE *summary_stream(const struct fit_options *o)
{
    return o->json && !strcmp(o->json, "-") ? stderr : stdout;
}

static int tell(struct fit *f, struct err *err)
{
    const struct batch_report *r = &f->report;
    const char *json = f->options->json;
    FILE *out = summary_stream(f->options);

    if (f->options->quiet) {
        if (batch_search_largest(&r->search) && out == stdout)
            fprintf(out, "%" PRIu64 "\n", batch_search_largest(&r->search));
    } else {
        batch_write_conclusion(r, out);
    }
    if (output_summary_check(out, err) ||
        (json && report_write(&batch_report_json, r, json, err)))
        return CMD_RUN_FAILED;
    return r->result.exit_status;
}

static void find_cache(struct fit *f)
{
    if (f->options->no_cache)
        return;
    f->cache =
        f->options->cache
            ? xstrdup(f->options->cache)
            : batch_cache_directory(getenv("XDG_CACHE_HOME"), getenv("HOME"));
}

static int fit(const struct fit_options *o, const struct job *job)
{
    struct fit f = {
        .options = o,
        .job = *job,
        .live = !o->quiet && isatty(STDERR_FILENO),
        .lines = o->quiet                ? NULL
                 : isatty(STDERR_FILENO) ? stderr
                                         : summary_stream(o),
        .report.result = {.command = job->command, .gpu = job->gpu}};
    struct err err = {""};
    int status = CMD_RUN_FAILED;

    if (batch_search_init(&f.report.search, o->from, o->to, o->multiple))
        err_set(&err, "--to: there is no multiple of %u from %u to %u",
                o->multiple, o->from, o->to);
    else if ((f.programs = job_programs(&err))) {
        f.report.search.capacity_bytes = batch_capacity(job);
        find_cache(&f);
        status = search(&f, &err);
        f.report.result.exit_status = status ? status : status_of(&f.report);
        if (!status)
            status = tell(&f, &err);
    }
    if (err.text[0])
        cmd_fail(status, &err);
    batch_search_fini(&f.report.search);
    free(f.report.outcomes);
    free(f.programs);
    free(f.cache);
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
        .job = JOB_DEFAULTS, .from = 1, .to = DEFAULT_TO, .multiple = 1};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);

    if (status >= 0)
        return status;
    struct job job = {.options = o.job,
                      .command = operands.values,
                      .trace_limit_bytes = JOB_TRACE_LIMIT_MIN,
                      .no_modules = true};
    if (check_place(operands.values, &err) ||
        quiet_check_outer("fit-batch", &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    status = cmd_check_job(&job);
    return status ? status : fit(&o, &job);
}
