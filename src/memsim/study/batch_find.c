/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/batch_find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/xmalloc.h"
#include "memsim/run/batch_ahead.h"
#include "memsim/run/batch_cache.h"
#include "memsim/run/job_start.h"
#include "memsim/run/spawn.h"
#include "memsim/run/workers.h"
#include "memsim/study/run_study.h"
#include "memsim/study/scratch.h"

/* A batch that the search needs, or may need. */
struct batch_run {
    uint64_t batch;
    char *key;  /* in the cache; NULL: there is none */
    bool known; /* the outcome, from the cache or by a run */
    bool needed;
    int output; /* of the run, if that failed; -1: none */
    struct batch_outcome outcome;
};

/* --- one run -------------------------------------------------------------- */

/* Sets F->job to the command with BATCH; command_end() undoes it. */
static int command_begin(struct batch_find *f, uint64_t batch, struct err *err)
{
    f->job.command = batch_command(f->report.result.command, batch);
    if (!launch_find(&f->job.launch, &f->launch, f->job.command, err))
        return 0;
    launch_fini(&f->job.launch);
    batch_command_free(f->job.command);
    return -1;
}

static void command_end(struct batch_find *f)
{
    launch_fini(&f->job.launch);
    batch_command_free(f->job.command);
}

/* What is known of BATCH; NULL, with ERR set: it cannot be run. */
static struct batch_run *run_find(struct batch_find *f, uint64_t batch,
                                  struct err *err)
{
    for (size_t i = 0; i < f->run_count; i++)
        if (f->runs[i]->batch == batch)
            return f->runs[i];
    if (command_begin(f, batch, err))
        return NULL;
    struct batch_run *r = xcalloc(1, sizeof *r);
    *r = (struct batch_run){.batch = batch, .output = -1};
    if (f->cache) {
        r->key = batch_key(&f->job, f->programs, environ);
        r->known = batch_cache_load(f->cache, r->key, &r->outcome);
    }
    command_end(f);
    xgrow(&f->runs, f->run_count, &f->run_capacity, sizeof(struct batch_run *));
    f->runs[f->run_count++] = r;
    return r;
}

/* What the traces of a job that fits say besides. */
static void add_times(const struct batch_find *f, const struct rundir *dir,
                      struct batch_outcome *o)
{
    struct result result;

    study_result(&result, dir, f->job.command);
    *o = batch_outcome_make(&result, o->batch);
    result_fini(&result);
}

/* Runs the job with BATCH; what it prints goes to the file OUTPUT. */
static int run_job(struct batch_find *f, uint64_t batch, int output,
                   struct batch_outcome *o, struct err *err)
{
    struct rundir dir;
    struct result result;

    if (command_begin(f, batch, err))
        return CMD_RUN_FAILED;
    f->job.output = output;
    int status = job_start(&f->job, &dir, err);
    if (!status) {
        result_init(&result, dir.session, f->job.command);
        *o = batch_outcome_make(&result, batch);
        result_fini(&result);
        if (o->verdict == BATCH_FITS)
            add_times(f, &dir, o);
        if (dir.late)
            batch_outcome_late(o);
        rundir_remove(&dir);
    }
    command_end(f);
    return status;
}

static int output_open(struct err *err)
{
    int fd = scratch_file();

    if (fd < 0)
        err_set(err, "cannot write to a temporary file; set TMPDIR");
    return fd;
}

/* A cache that cannot be written costs the cache only. */
static void keep_outcome(struct batch_find *f, const struct batch_run *r)
{
    struct err err = {""};

    if (!f->cache || batch_verdict_ends(r->outcome.verdict) ||
        !batch_cache_store(f->cache, r->key, &r->outcome, &err))
        return;
    if (f->job.note)
        f->job.note(err.text);
    free(f->cache);
    f->cache = NULL;
}

/* R was run, and came out as O; it takes the file OUTPUT. */
static void run_ended(struct batch_find *f, struct batch_run *r,
                      const struct batch_outcome *o, int output)
{
    r->outcome = *o;
    r->known = true;
    if (batch_verdict_ends(o->verdict))
        r->output = output;
    else
        close(output);
    keep_outcome(f, r);
}

static int run_alone(struct batch_find *f, struct batch_run *r, struct err *err)
{
    struct batch_outcome o;
    int output = output_open(err);

    if (output < 0)
        return CMD_RUN_FAILED;
    int status = run_job(f, r->batch, output, &o, err);
    if (!status && !spawn_interrupted())
        run_ended(f, r, &o, output);
    else
        close(output);
    return status;
}

/* --- several at a time ---------------------------------------------------- */

/* A run in a process of its own, in memory that both share. */
struct side_run {
    uint64_t batch;
    int output; /* -1: there is none */
    int ended;  /* how that process did */
    bool done;  /* it wrote what follows */
    int status;
    struct err err;
    struct batch_outcome outcome;
};

struct side {
    struct batch_find *find;
    struct side_run *runs;
};

static int side_run(void *context, size_t at)
{
    const struct side *side = context;
    struct side_run *r = &side->runs[at];

    r->status = run_job(side->find, r->batch, r->output, &r->outcome, &r->err);
    r->done = !spawn_interrupted();
    return 0;
}

static int side_ended(void *context, size_t at, int status)
{
    const struct side *side = context;

    side->runs[at].ended = status;
    return 0;
}

/* Takes the outcome of R over. Without one, returns memsim's exit status, with
 * ERR set unless a signal ended R. */
static int side_take(struct batch_find *f, const struct side_run *r,
                     struct err *err)
{
    struct batch_run *of =
        r->done && !r->status ? run_find(f, r->batch, err) : NULL;

    if (of) {
        run_ended(f, of, &r->outcome, r->output);
        return 0;
    }
    close(r->output);
    if (r->done)
        *err = r->err;
    else if (!spawn_interrupted())
        err_set(err, "the run of batch %" PRIu64 " ended with status %d",
                r->batch, r->ended);
    return r->done ? r->status : CMD_RUN_FAILED;
}

/* Makes COUNT runs, the first of which the search needs: another one that
 * cannot be made is left for when it does. */
static int side_by_side(struct batch_find *f, struct side_run *runs,
                        size_t count, struct err *err)
{
    struct side side = {f, runs};
    const struct workers w = {
        .most = count, .work = side_run, .ended = side_ended, .context = &side};
    size_t *at = xcalloc(count, sizeof *at);
    struct err other = {""};
    int status = 0;

    for (size_t i = 0; i < count; i++)
        at[i] = i;
    int error = workers_run(&w, at, count);
    free(at);
    for (size_t i = 0; i < count; i++)
        if (i)
            side_take(f, &runs[i], &other);
        else
            status = side_take(f, &runs[i], err);
    if (status && error)
        err_set(err, "no process for a run: %s", strerror(error));
    return status;
}

static bool find_known(void *context, uint64_t batch, struct batch_try *t);

/* Runs what the search needs next, and what it may need then. */
static int run_ahead(struct batch_find *f, struct err *err)
{
    const struct batch_known known = {find_known, f};
    size_t bytes = f->jobs * sizeof(struct side_run), most = 0;
    uint64_t *batches = xcalloc(f->jobs, sizeof *batches);
    size_t count = batch_ahead(&f->report.search, &known, batches, f->jobs);
    struct side_run *runs = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = CMD_RUN_FAILED;

    if (runs == MAP_FAILED) {
        err_set(err, "no memory for the runs: %s", strerror(errno));
    } else {
        for (; most < count; most++) {
            runs[most].batch = batches[most];
            runs[most].output = output_open(err);
            if (runs[most].output < 0)
                break;
        }
        if (most)
            status = side_by_side(f, runs, most, err);
        munmap(runs, bytes);
    }
    free(batches);
    return status;
}

/* --- the search ----------------------------------------------------------- */

/* The outcome of R for this job; it is kept for jobs of any length. */
static struct batch_outcome outcome_of(const struct batch_find *f,
                                       const struct batch_run *r)
{
    struct batch_outcome o = r->outcome;

    if (o.verdict == BATCH_FITS && o.lasts_steps && o.lasts_steps < f->steps)
        o.verdict = BATCH_GROWS;
    return o;
}

static struct batch_try try_of(const struct batch_outcome *o)
{
    return (struct batch_try){o->batch, o->verdict == BATCH_FITS,
                              o->peak_allocated_bytes, o->peak_used_bytes};
}

static bool find_known(void *context, uint64_t batch, struct batch_try *t)
{
    struct batch_find *f = context;
    struct err err;
    const struct batch_run *r = run_find(f, batch, &err);

    if (!r || !r->known)
        return false;
    const struct batch_outcome o = outcome_of(f, r);
    *t = try_of(&o);
    return true;
}

static void note_outcome(struct batch_find *f, const struct batch_outcome *o)
{
    struct batch_report *r = &f->report;

    xgrow(&r->outcomes, r->outcome_count, &r->outcome_capacity,
          sizeof *r->outcomes);
    r->outcomes[r->outcome_count++] = *o;
    if (f->watch.outcome)
        f->watch.outcome(f->watch.context, o);
}

static void show_running(const struct batch_find *f, uint64_t batch)
{
    if (f->watch.runs)
        f->watch.runs(f->watch.context, batch);
}

/* Has R known, unless a signal comes, or came while others ran. */
static int run_needed(struct batch_find *f, struct batch_run *r,
                      struct err *err)
{
    int status = 0;

    r->needed = true;
    if (r->known || spawn_interrupted())
        return 0;
    show_running(f, r->batch);
    status = f->jobs > 1 ? run_ahead(f, err) : run_alone(f, r, err);
    show_running(f, 0);
    return status;
}

static void count_unneeded(struct batch_find *f)
{
    for (size_t i = 0; i < f->run_count; i++) {
        const struct batch_run *r = f->runs[i];
        f->report.unneeded_runs += r->known && !r->needed && !r->outcome.cached;
    }
}

static int search_batches(struct batch_find *f, struct err *err)
{
    struct batch_search *s = &f->report.search;
    uint64_t batch;

    while ((batch = batch_search_next(s))) {
        struct batch_run *r = run_find(f, batch, err);
        int status = r ? run_needed(f, r, err) : CMD_RUN_FAILED;

        if (spawn_interrupted() && (!r || !r->known)) {
            f->report.signal = spawn_signal();
            return 0;
        }
        if (status)
            return status;
        if (r->output >= 0 && f->watch.failed)
            f->watch.failed(f->watch.context, r->output);
        const struct batch_outcome o = outcome_of(f, r);
        note_outcome(f, &o);
        if (batch_verdict_ends(o.verdict))
            return 0;
        const struct batch_try t = try_of(&o);
        batch_search_tell(s, t.fits, t.peak_allocated_bytes, t.peak_used_bytes);
    }
    return 0;
}

int batch_find_run(struct batch_find *f, struct err *err)
{
    int status = search_batches(f, err);
    count_unneeded(f);
    return status;
}

/* Makes F's search one for the largest batch of all; its cache is the user's.
 */
static int largest_begin(struct batch_find *f, struct err *err)
{
    struct job *job = &f->job;

    if (batch_search_init(&f->report.search, 1, BATCH_FIND_TO, 1) ||
        job_gpu(&job->options, &job->gpu, err) ||
        job_host_limit(&job->options, &job->host_limit_bytes, err) ||
        job_check(job->command[0], err))
        return -1;
    err->text[0] = '\0'; /* what it only warns of */
    if (!(f->programs = job_programs(err)))
        return -1;
    f->report.search.capacity_bytes = batch_capacity(job);
    f->cache = batch_cache_directory(getenv("XDG_CACHE_HOME"), getenv("HOME"));
    return 0;
}

uint64_t batch_find_largest(const struct job *job, char *const *template,
                            struct err *err)
{
    struct batch_find f = {.job = {.options = job->options,
                                   .command = (char **)template,
                                   .trace_limit_bytes = JOB_TRACE_LIMIT,
                                   .note = job->note},
                           .report.result = {.command = (char **)template}};
    struct batch_search *s = &f.report.search;
    uint64_t largest = 0;

    if (!largest_begin(&f, err) && !batch_find_run(&f, err) &&
        !batch_search_next(s))
        largest = batch_search_largest(s);
    batch_find_fini(&f);
    return largest;
}

void batch_find_fini(struct batch_find *f)
{
    for (size_t i = 0; i < f->run_count; i++) {
        if (f->runs[i]->output >= 0)
            close(f->runs[i]->output);
        free(f->runs[i]->key);
        free(f->runs[i]);
    }
    free(f->runs);
    batch_search_fini(&f->report.search);
    free(f->report.outcomes);
    free(f->programs);
    free(f->cache);
}
