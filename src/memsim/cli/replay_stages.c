/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/replay_stages.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "fits/cluster.h"
#include "memsim/change/pipe_join.h"
#include "memsim/change/stages.h"
#include "memsim/cli/scratch.h"

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
    if (!p->output->cluster)
        return 0;
    if (cluster_load(p->output->cluster, &cluster, err))
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
static char *describe(const struct stages_report *r)
{
    char *layers = layers_text(r);
    char *text = xasprintf("%" PRIu32 " stages (%s layers of %s) on %" PRIu32
                           " ranks, %s, %" PRIu32 " microbatches",
                           r->split.stages, layers, r->prefix, r->split.ranks,
                           pipe_schedule_name(r->kind), r->microbatches);

    free(layers);
    return text;
}

static void note_row(struct result *result, const struct stages_report *r,
                     uint32_t stage)
{
    const struct stages_report_row *row = &r->rows[stage];
    char bytes[32], left[64] = "", sent[64] = "";

    if (row->activation_bytes)
        snprintf(
            left, sizeof left, ", whose forwards leave %s each",
            units_format_bytes(row->activation_bytes, bytes, sizeof bytes));
    if (row->sent_bytes)
        snprintf(sent, sizeof sent, "; sends %s",
                 units_format_bytes(row->sent_bytes, bytes, sizeof bytes));
    result_note(result,
                "stage %" PRIu32 ", rank %" PRIu32 ": %" PRIu64
                " parameters; at most %" PRIu32 " microbatches in flight%s%s",
                stage, row->rank, row->parameters, row->in_flight, left, sent);
}

static void note_all(struct result *result, const void *what)
{
    const struct stages_report *r = what;

    for (uint32_t s = 0; s < r->split.stages; s++)
        note_row(result, r, s);
    if (r->recorded == 1 && r->microbatches > 1)
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
                    "%" PRIu32 " warm-up steps that are other ones are left "
                    "out",
                    r->steps_left_out);
    result_note(result, "what a pipeline's runtime does on the host, and what "
                        "a script does beside (scaling gradients, clipping by "
                        "the norm of all stages, joining outputs), is not in "
                        "the recording");
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

int replay_stages(const struct replay_profile *p,
                  const struct replay_stages *stages, struct err *err)
{
    struct stages_change change = {.stages = stages->stages,
                                   .schedule = stages->schedule,
                                   .microbatches = stages->microbatches,
                                   .node_ranks = stages->node_ranks};
    struct stages_report report;
    struct scratch scratch;
    int status = CMD_RUN_FAILED;

    if ((!change.node_ranks && node_width(p, &change.node_ranks, err)) ||
        scratch_make(&scratch, err))
        return CMD_RUN_FAILED;
    if (!change_all(p->run, &change, scratch.path, &report, err)) {
        char *changed = describe(&report);
        status = replay_profile_changed(p, scratch.path, changed, note_all,
                                        &report, err);
        free(changed);
    }
    scratch_remove(&scratch);
    return status;
}
