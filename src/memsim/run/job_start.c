/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/job_start.h"

#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/xmalloc.h"

/* Each but the first shows one axis more, or one rank. */
#define RUNS_MOST (RANK_AXES + RANK_AXES_ALONE)

/* Tells JOB's note TEXT, which is freed. */
static void note_and_free(const struct job *job, char *text)
{
    if (job->note)
        job->note(text);
    free(text);
}

/* Runs JOB once. Of ranks that were named, the run has shown for whom they
 * stand. */
static int job_once(struct job *job, struct rundir *dir, struct err *err)
{
    int status = job_run(job, dir, err);

    if (!status && launch_learn(&job->launch, dir->path) &&
        launch_classes_write(&job->launch, dir->path, err))
        return CMD_RUN_FAILED;
    return status;
}

/* Runs JOB with the ranks that it has now, whatever else differs: a rank that
 * needs another one ends with an error that says which, not in order that the
 * job is run again. */
static int job_settle(struct job *job, struct rundir *dir, struct err *err)
{
    bool gave_up = dir->session->exit_status == RANK_AXIS_AGAIN;

    note_and_free(job,
                  xasprintf("more ranks differ than the %d that can be run: "
                            "name those that matter (--ranks)",
                            SESSION_DEVICES));
    if (!gave_up)
        return 0;
    launch_settle(&job->launch);
    rundir_remove(dir);
    return job_once(job, dir, err);
}

int job_start(struct job *job, struct rundir *dir, struct err *err)
{
    char *why;
    int status = job_once(job, dir, err), runs = 0;

    while (!status && !dir->late && runs++ < RUNS_MOST &&
           launch_is_again(&job->launch, dir->path, &why)) {
        note_and_free(job, why);
        rundir_remove(dir);
        status = job_once(job, dir, err);
    }
    if (!status && !dir->late && job->launch.chooses &&
        (job->launch.axes.left_out || runs > RUNS_MOST))
        return job_settle(job, dir, err);
    return status;
}
