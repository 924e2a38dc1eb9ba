/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_replicas.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/change/replicas.h"
#include "memsim/change/shards.h"
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

static void shards_note(struct result *result, const void *what)
{
    const struct shards_report *r = what;
    char layer[32], rest[32];

    result_note(result,
                "parameters are sharded as fully_shard of each of the %" PRIu32
                " layers (%s each) and of the model (%s) does by default, in "
                "the gradients' type; kernels and collectives that it adds "
                "have the cost models' times, and 6 us of the host's for a "
                "launch",
                r->layers,
                units_format_bytes(r->layer_bytes, layer, sizeof layer),
                units_format_bytes(r->rest_bytes, rest, sizeof rest));
    result_note(result,
                "the times of %" PRIu32 " kernels on lists of tensors, as the "
                "optimizer's, are those of a shard",
                r->lists);
    if (r->accumulates)
        result_note(result, "gradients of several backwards of a step are "
                            "scattered in the last of them "
                            "(set_requires_gradient_sync)");
    if (r->steps_kept)
        result_note(result,
                    "%" PRIu32 " steps without the layers are as recorded",
                    r->steps_kept);
}

static int shards_and_play(const struct replay_profile *p, const char *to,
                           struct replayed *r, struct err *err)
{
    struct replay_profile alone = *p;
    struct shards_report report;
    char path[PATH_MAX];

    run_trace_path(to, 0, path, sizeof path);
    if (shards_change(p->data_parallel, p->run->traces[0].path, path, &report,
                      err))
        return -1;
    if (report.collectives)
        return err_set(err, "--fsdp: the profile has collectives that may be "
                            "those of gradients or shards already: --dp "
                            "without it prices them for another width");
    alone.data_parallel = 0; /* the collectives have the width */
    alone.contends = true;
    const struct replay_made made = {
        to, xasprintf("FSDP on %" PRIu32 " GPUs", p->data_parallel),
        shards_note, &report};
    return replay_profile_changed(&alone, &made, r, err);
}

int replay_replicas_put(const struct replay_profile *p, const char *folder,
                        struct replicas_report *report, struct err *err)
{
    const struct replicas replicas = {p->data_parallel, 0, 1};
    char path[PATH_MAX], to[PATH_MAX];

    run_trace_path(folder, 0, path, sizeof path);
    snprintf(to, sizeof to, "%.*s/wider", PATH_MAX - 16, folder);
    if (replicas_change(&replicas, path, to, report, err))
        return -1;
    if (report->steps && rename(to, path))
        return err_set(err, "%s: %m", path);
    return 0;
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
    if (p->average)
        return err_set(err,
                       "--average: no group '%s' of the profile averages "
                       "gradients: without it --dp puts in what "
                       "DistributedDataParallel does",
                       p->average);
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

    if (p->run->count > 1 && p->shards)
        return err_set(err,
                       "--fsdp is put into the profile of one GPU, and this "
                       "has %zu: import one of them alone",
                       p->run->count);
    if (p->run->count > 1)
        return replay_profile(p, r, err);
    if (scratch_make(&scratch, err))
        return -1;
    int rc = (p->shards ? shards_and_play : change_and_play)(p, scratch.path, r,
                                                             err);
    scratch_remove(&scratch);
    return rc;
}
