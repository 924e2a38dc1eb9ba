/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/job_timelines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/report/export/kineto_write.h"
#include "memsim/study/job_together.h"
#include "memsim/study/scratch.h"
#include "memsim/time/dependencies.h"
#include "memsim/time/time_job.h"

#define DEPENDENCIES_SHOWN 5

/* What is written of each member's timeline. */
struct writing {
    struct time_want *wants; /* by member */
    struct kineto_job *kineto_jobs;
    struct kineto_writer **kineto; /* NULL: none of that member */
    struct simulation_sink *sinks;
};

/* Says what is wanted of member I, whose timing is its rank's if OWNS. */
static int writing_add(struct writing *w, const struct study_job *j, size_t i,
                       bool owns, struct err *err)
{
    const struct study_options *o = j->t->options;
    const struct timing *timing = j->of[i]->timing;
    struct time_want *want = &w->wants[i];

    want->whole = o->whole_log || o->chakra;
    want->one = owns && timing->step_count && (o->step_log || o->depends);
    want->step = want->one ? (uint32_t)timing->typical : 0;
    if (!owns || !o->kineto)
        return 0;
    w->kineto_jobs[i] =
        (struct kineto_job){j->result, j->of[i], j->t->timeline.price.gpu};
    int fd = scratch_file();
    FILE *events = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!events)
        return err_set(err,
                       "--kineto: cannot write to a temporary file: %s; "
                       "set TMPDIR",
                       strerror(errno));
    w->kineto[i] = kineto_begin(&w->kineto_jobs[i], events, &w->sinks[i]);
    want->sink = &w->sinks[i];
    return 0;
}

/* What --depends asks for of LOG, a typical step. */
static void list_dependencies(const struct study_job *j,
                              const struct timing *timing,
                              const struct time_log *log)
{
    struct result *result = j->result;
    size_t size;

    if (!j->t->options->depends || result->dependencies || !log)
        return;
    FILE *out = open_memstream(&result->dependencies, &size);
    if (!out)
        return;
    size_t count = dependencies_print(log, j->t->options->depends,
                                      DEPENDENCIES_SHOWN, out);
    if (count > DEPENDENCIES_SHOWN)
        fprintf(out, "  (%zu more have it in their name)\n",
                count - DEPENDENCIES_SHOWN);
    if (!count)
        fprintf(out,
                "  no operation of step %zu has '%s' in its name, "
                "operator or module\n",
                timing->typical, j->t->options->depends);
    fclose(out);
}

/* The timeline of member I for --kineto. */
static int write_kineto(struct writing *w, const struct study_job *j, size_t i,
                        struct err *err)
{
    const struct study_time *t = j->t;
    struct time_want *want = &w->wants[i];
    char *path = kineto_path(j->result, j->of[i], t->options->kineto);
    int rc = kineto_end(w->kineto[i], want->failed ? NULL : &want->result, path,
                        err);

    w->kineto[i] = NULL;
    if (!rc && want->failed)
        rc = err_set(err, "%s", want->err.text);
    if (!rc && t->options->written && strcmp(path, "-"))
        t->options->written(j->of[i]->rank, path);
    free(path);
    return rc;
}

/* Hands on what came of member I. */
static int writing_take(struct writing *w, const struct study_job *j, size_t i,
                        struct err *err)
{
    struct time_want *want = &w->wants[i];
    struct result_rank *rank = j->of[i];

    if (want->whole_log && want->whole_log->op_count) {
        result_timeline_add(j->result, rank->rank, j->processes[i],
                            want->whole_log);
        want->whole_log = NULL;
    }
    list_dependencies(j, rank->timing, want->one_log);
    if (want->one_log && j->t->options->step_log) {
        time_log_destroy(rank->step);
        rank->step = want->one_log;
        want->one_log = NULL;
    }
    return w->kineto[i] ? write_kineto(w, j, i, err) : 0;
}

/* Simulates the job again for all that is written of its timelines. OWNS says
 * for each member whether its timing is its rank's. */
int study_timelines_write(const struct study_job *j, const bool *owns,
                          struct err *err)
{
    const struct simulation_peers peers = job_peers(j);
    struct writing w = {
        .wants = xcalloc(j->count + 1, sizeof *w.wants),
        .kineto_jobs = xcalloc(j->count + 1, sizeof *w.kineto_jobs),
        .kineto = xcalloc(j->count + 1, sizeof(struct kineto_writer *)),
        .sinks = xcalloc(j->count + 1, sizeof *w.sinks),
    };
    int rc = 0;

    for (size_t i = 0; !rc && i < j->count; i++)
        rc = writing_add(&w, j, i, owns[i], err);
    if (!rc)
        time_job_read(w.wants, &peers, &j->timeline);
    for (size_t i = 0; !rc && i < j->count; i++)
        rc = writing_take(&w, j, i, err);
    for (size_t i = 0; i < j->count; i++)
        if (w.kineto[i])
            kineto_end(w.kineto[i], NULL, NULL, err);
    time_job_fini(w.wants, j->count);
    free(w.wants);
    free(w.kineto_jobs);
    free(w.kineto);
    free(w.sinks);
    return rc;
}
