/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_replicas.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/change/replicas.h"
#include "memsim/study/scratch.h"
#include "memsim/result/result.h"

void replay_replicas_note(struct result *result, const void *what)
{
    const struct replicas_report *r = what;

    result_note(result,
                "a step's %" PRIu32 " gradients of %" PRIu64
                " MiB are averaged in %" PRIu32
                " buckets, as DistributedDataParallel does by default; "
                "kernels, copies and collectives that it adds have the cost "
                "models' times, and 6 us of the host's for a launch",
                r->gradients, r->bytes >> 20, r->buckets);
    if (r->accumulates)
        result_note(result, "gradients of several backwards of a step are "
                            "averaged in the last of them");
}

static int change_and_play(const struct replay_profile *p, const char *to,
                           struct replayed *r, struct err *err)
{
    const struct replicas replicas = {p->data_parallel, 0, 1};
    struct replay_profile alone = *p;
    struct replicas_report report;
    char path[PATH_MAX];

    run_trace_path(to, 0, path, sizeof path);
    if (replicas_change(&replicas, p->run->traces[0].path, path, &report, err))
        return -1;
    if (report.collectives)
        return replay_profile(p, r, err);
    alone.data_parallel = 0; /* the collectives have the width */
    alone.contends = true;
    const struct replay_made made = {
        to,
        xasprintf("DistributedDataParallel on %" PRIu32 " GPUs",
                  p->data_parallel),
        replay_replicas_note, &report};
    return replay_profile_changed(&alone, &made, r, err);
}

int replay_replicas(const struct replay_profile *p, struct replayed *r,
                    struct err *err)
{
    struct scratch scratch;

    if (p->run->count > 1)
        return replay_profile(p, r, err);
    if (scratch_make(&scratch, err))
        return -1;
    int rc = change_and_play(p, scratch.path, r, err);
    scratch_remove(&scratch);
    return rc;
}
