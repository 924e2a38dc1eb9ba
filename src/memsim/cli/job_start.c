/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/job_start.h"

#include <stdlib.h>

#include "memsim/cli/cmd.h"

int job_start(struct job *job, struct rundir *dir, struct err *err)
{
    char *why;
    int status = job_run(job, dir, err);

    for (int i = 0; !status && i < RANK_AXES &&
                    launch_is_again(&job->launch, dir->path, &why);
         i++) {
        cmd_note("%s", why);
        free(why);
        rundir_remove(dir);
        status = job_run(job, dir, err);
    }
    if (!status && job->launch.axes.left_out)
        cmd_note("more ranks differ than the %d that can be run: name those "
                 "that matter (--ranks)",
                 SESSION_DEVICES);
    return status;
}
