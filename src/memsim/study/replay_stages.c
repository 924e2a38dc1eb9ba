/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_stages.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "fits/cluster.h"
#include "memsim/change/averages.h"
#include "memsim/change/pipe_join.h"
#include "memsim/change/replicas.h"
#include "memsim/change/stages.h"
#include "memsim/study/replay_replicas.h"
#include "memsim/study/scratch.h"

static void path_in(void *context, uint32_t rank, char *path, size_t size)
{
    run_trace_path(context, rank, path, size);
}

/* GPUs of a node of the cluster that is asked for; 0: none is, or they are not
 * known. */
static int node_width(const struct replay_profile *p, uint32_t *width,
                      struct err *err)
{
    struct cluster cluster;

    *width = 0;
    if (!p->options->cluster)
        return 0;
    if (cluster_load(p->options->cluster, &cluster, err))
        return -1;
    *width = cluster.gpus_per_node;
    cluster_fini(&cluster);
    return 0;
}

/* "2+1+1 layers" */
static char *layers_text(const struct stages_report *r)
{
    char *text = xasprintf("%s", "");

    for (uint32_t s = 0; s < r->split.stages; s++) {
        char *longer = xasprintf("%s%s%" PRIu32, text, s ? "+" : "",
                                 r->split.first[s + 1] - r->split.first[s]);
        free(text);
        text = longer;
    }
    return text;
}

/* "4 stages (2+2+2+2 layers of blocks) on 4 ranks, 1f1b, 8 microbatches" */
static char *stages_describe(const struct stages_report *r)
{
    char *layers = layers_text(r);
    char *text =
        xasprintf("%" PRIu32 " stages (%s layers%s%s) on %" PRIu32
                  " ranks, %s, %" PRIu32 " microbatches",
                  r->split.stages, layers,
                  *r->prefix ? " of " : ", by repetition", r->prefix,
                  r->split.ranks, pipe_schedule_name(r->kind), r->microbatches);

    free(layers);
    return text;
}

static void note_row(struct result *result, const struct stages_report *r,
                     uint32_t stage)
{
    const struct stages_report_row *row = &r->rows[stage];
    char bytes[32], left[64] = "", sent[64] = "", held[64] = "";

    if (row->activation_bytes)
        snprintf(
            left, sizeof left, ", whose forwards leave %s each",
            units_format_bytes(row->activation_bytes, bytes, sizeof bytes));
    if (row->sent_bytes)
        snprintf(sent, sizeof sent, "; sends %s",
                 units_format_bytes(row->sent_bytes, bytes, sizeof bytes));
    if (row->parameters)
        snprintf(held, sizeof held, "%" PRIu64 " parameters; ",
                 row->parameters);
    result_note(result,
                "stage %" PRIu32 ", rank %" PRIu32 ": %sat most %" PRIu32
                " microbatches in flight%s%s",
                stage, row->rank, held, row->in_flight, left, sent);
}

/* What was made of the recording. */
struct made {
    struct averages_report averages; /* of a profile: taken out */
    struct stages_report stages;
    struct replicas_report replicas; /* of the last stage; steps 0: none */
};

static void note_all(struct result *result, const void *what)
{
    const struct made *made = what;
    const struct stages_report *r = &made->stages;

    bool marked = r->rows[0].parameters > 0;

    for (uint32_t s = 0; s < r->split.stages; s++)
        note_row(result, r, s);
    if (!marked)
        result_note(result,
                    "the profile does not say which gradients there are: the "
                    "optimizer's times are those of the share of the layers, "
                    "and no kernels that add gradients are put in "
                    "(record_shapes=True)");
    if (r->recorded == 1 && r->microbatches > 1 && marked)
        result_note(result,
                    "a step of the recording has one microbatch; the sums of "
                    "the following ones' gradients are put at the end of each "
                    "backward, one kernel for each parameter");
    else if (r->microbatches > r->recorded)
        result_note(result,
                    "a step of the recording has %" PRIu32 " microbatches; the "
                    "last one's operations are those of the following",
                    r->recorded);
    if (r->steps_left_out)
        result_note(result,
                    "%" PRIu32 " steps that are other ones, as warm-up is, are "
                    "left out",
                    r->steps_left_out);
    result_note(result, "what a pipeline's runtime does on the host, and what "
                        "a script does beside (scaling gradients, clipping by "
                        "the norm of all stages, joining outputs), is not in "
                        "the recording");
    if (made->averages.ranks)
        result_note(result,
                    "the profile's averages of gradients, over %" PRIu32
                    " ranks, are taken out, and those of the stages put in",
                    made->averages.ranks);
    if (made->replicas.steps)
        replay_replicas_note(result, &made->replicas);
}

/* The same of a profile. Its data parallelism is not that of the stages. */
static int profile_change(const struct replay_profile *p,
                          const struct stages_change *change, char *to,
                          struct made *made, struct err *err)
{
    const char *from = p->run->traces[0].path;
    char alone[PATH_MAX];

    if (p->run->count > 1)
        return err_set(err,
                       "--change: stages are made of the profile of one rank, "
                       "and this has %zu: import one of them alone",
                       p->run->count);
    snprintf(alone, sizeof alone, "%.*s/alone", PATH_MAX - 16, to);
    if (averages_take(p->average, from, alone, &made->averages, err))
        return -1;
    int rc = stages_change(change, made->averages.ranks ? alone : from, path_in,
                           to, &made->stages, err);
    unlink(alone);
    return rc;
}

/* The ranks' recordings in the folder TO, made of that of one GPU, or of a
 * pipeline's. */
static int change_all(const struct run *run, const struct stages_change *change,
                      char *to, struct stages_report *report, struct err *err)
{
    char whole[PATH_MAX];
    const char **paths;
    int rc;

    if (run->count == 1)
        return stages_change(change, run->traces[0].path, path_in, to, report,
                             err);
    snprintf(whole, sizeof whole, "%.*s/whole", PATH_MAX - 16, to);
    paths = xcalloc(run->count, sizeof *paths);
    for (size_t i = 0; i < run->count; i++)
        paths[i] = run->traces[i].path;
    rc = pipe_join(paths, run->count, change->prefix, whole, err) ||
         stages_change(change, whole, path_in, to, report, err);
    unlink(whole);
    free(paths);
    return rc ? -1 : 0;
}

/* Over how many ranks the gradients of P's stages are averaged: as is asked,
 * else as in the profile; 0: they are not. */
static uint32_t width_of(const struct replay_profile *p,
                         const struct made *made)
{
    return p->data_parallel ? p->data_parallel : made->averages.ranks;
}

/* Each stage's gradients are averaged over the ranks of P that have it. */
static int replicas_make(const struct replay_profile *p, const char *folder,
                         struct made *made, struct err *err)
{
    char from[PATH_MAX], to[PATH_MAX];

    if (made->stages.split.chunks > 1)
        return err_set(err,
                       "--dp: of a rank with %" PRIu32 " stages it is not "
                       "known which of its backwards is the last one of each: "
                       "give stages=P, of one stage each",
                       made->stages.split.chunks);
    for (uint32_t rank = 0; rank < made->stages.split.ranks; rank++) {
        const struct replicas replicas = {width_of(p, made), rank,
                                          made->stages.split.ranks};
        run_trace_path(folder, rank, from, sizeof from);
        snprintf(to, sizeof to, "%.*s/wider", PATH_MAX - 16, folder);
        if (replicas_change(&replicas, from, to, &made->replicas, err))
            return -1;
        if (made->replicas.collectives)
            return err_set(err,
                           "--dp: the profile has collectives that may "
                           "average gradients already: --dp without "
                           "--change stages=P prices them for other widths");
        if (rename(to, from))
            return err_set(err, "%s: %m", from);
    }
    return 0;
}

/* "..., on each of 8 replicas" */
static char *describe_all(const struct replay_profile *p,
                          const struct made *made)
{
    char *stages = stages_describe(&made->stages);
    char *text =
        made->replicas.steps
            ? xasprintf("%s, of each %" PRIu32 " under DistributedDataParallel",
                        stages, width_of(p, made))
            : xasprintf("%s", stages);

    free(stages);
    return text;
}

int replay_stages(const struct replay_profile *p,
                  const struct replay_stages *stages, struct replayed *r,
                  struct err *err)
{
    struct stages_change change = {.stages = stages->stages,
                                   .schedule = stages->schedule,
                                   .microbatches = stages->microbatches,
                                   .node_ranks = stages->node_ranks};
    struct made made = {.replicas = {.steps = 0}};
    struct replay_profile alone = *p;
    struct scratch scratch;

    if ((!change.node_ranks && node_width(p, &change.node_ranks, err)) ||
        scratch_make(&scratch, err))
        return -1;
    int rc = p->why ? change_all(p->run, &change, scratch.path, &made.stages,
                                 err)
                    : profile_change(p, &change, scratch.path, &made, err);
    if (!rc && !p->why && width_of(p, &made)) {
        alone.data_parallel = 0; /* the collectives have the width */
        alone.contends = true;
        rc = replicas_make(p, scratch.path, &made, err);
    }
    if (!rc)
        rc = replay_profile_changed(
            &alone,
            &(struct replay_made){scratch.path, describe_all(p, &made),
                                  note_all, &made},
            r, err);
    scratch_remove(&scratch);
    return rc;
}
