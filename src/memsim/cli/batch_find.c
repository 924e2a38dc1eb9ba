/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/batch_find.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/job_start.h"
#include "memsim/cli/output.h"
#include "memsim/cli/quiet_job.h"
#include "memsim/run/batch_cache.h"
#include "memsim/run/spawn.h"

#define DEFAULT_TO 65536

/* What the traces of a job that fits say besides. */
static void add_times(const struct batch_find *f, const struct rundir *dir,
                      struct batch_outcome *o)
{
    struct result result;

    output_result(&result, dir, f->job.command);
    *o = batch_outcome_make(&result, o->batch);
    result_fini(&result);
}

/* Runs the job with the command that was filled in. */
static int try_run(struct batch_find *f, uint64_t batch,
                   struct batch_outcome *o, struct err *err)
{
    struct rundir dir;
    struct result result;

    f->job.output = quiet_output();
    if (f->job.output < 0)
        return err_set(err, "cannot write to a temporary file; set TMPDIR"),
               CMD_RUN_FAILED;
    int status = job_start(&f->job, &dir, err);
    if (!status) {
        result_init(&result, dir.session, f->job.command);
        *o = batch_outcome_make(&result, batch);
        result_fini(&result);
        if (o->verdict == BATCH_FITS)
            add_times(f, &dir, o);
        rundir_remove(&dir);
        if (batch_verdict_ends(o->verdict) && !quiet_interrupted())
            quiet_show(f->job.output);
    }
    close(f->job.output);
    return status;
}

/* A cache that cannot be written costs the cache only. */
static void keep(struct batch_find *f, const char *key,
                 const struct batch_outcome *o)
{
    struct err err = {""};

    if (batch_verdict_ends(o->verdict) ||
        !batch_cache_store(f->cache, key, o, &err))
        return;
    fprintf(stderr, "memsim: note: %s\n", err.text);
    free(f->cache);
    f->cache = NULL;
}

static int try_batch(struct batch_find *f, uint64_t batch,
                     struct batch_outcome *o, struct err *err)
{
    char **command = batch_command(f->report.result.command, batch), *key;
    int status = 0;

    f->job.command = command;
    if (launch_find(&f->job.launch, &f->launch, command, err)) {
        launch_fini(&f->job.launch);
        batch_command_free(command);
        return CMD_RUN_FAILED;
    }
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
    launch_fini(&f->job.launch);
    batch_command_free(command);
    return status;
}

/* It is kept for jobs of any length. */
static void judge_growth(const struct batch_find *f, struct batch_outcome *o)
{
    if (o->verdict == BATCH_FITS && o->lasts_steps &&
        o->lasts_steps < f->steps)
        o->verdict = BATCH_GROWS;
}

static void note_outcome(struct batch_find *f, const struct batch_outcome *o)
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

int batch_find_run(struct batch_find *f, struct err *err)
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
        judge_growth(f, &o);
        note_outcome(f, &o);
        if (batch_verdict_ends(o.verdict))
            return 0;
        batch_search_tell(s, o.verdict == BATCH_FITS, o.peak_allocated_bytes,
                          o.peak_used_bytes);
    }
    return 0;
}

uint64_t batch_find_largest(const struct job *job, char *const *template)
{
    struct batch_find f = {
        .job = {.options = job->options,
                .command = (char **)template,
                .trace_limit_bytes = JOB_TRACE_LIMIT},
        .report.result = {.command = (char **)template}};
    struct batch_search *s = &f.report.search;
    struct err err = {""};
    uint64_t largest = 0;

    if (batch_search_init(s, 1, DEFAULT_TO, 1))
        return 0;
    if (!cmd_check_job(&f.job) && (f.programs = job_programs(&err))) {
        s->capacity_bytes = batch_capacity(&f.job);
        f.cache = batch_cache_directory(getenv("XDG_CACHE_HOME"),
                                        getenv("HOME"));
        if (!batch_find_run(&f, &err) && !batch_search_next(s))
            largest = batch_search_largest(s);
    }
    if (err.text[0])
        cmd_note("the largest batch is not known: %s", err.text);
    batch_find_fini(&f);
    return largest;
}

void batch_find_fini(struct batch_find *f)
{
    batch_search_fini(&f->report.search);
    free(f->report.outcomes);
    free(f->programs);
    free(f->cache);
}
