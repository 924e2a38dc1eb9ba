/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/replay_changed.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/xmalloc.h"
#include "memsim/change/layers.h"
#include "memsim/cli/scratch.h"

/* Which ranks stand for others stays as it was. */
static int ranks_link(const char *from, const char *to, struct err *err)
{
    char absolute[PATH_MAX], source[PATH_MAX], target[PATH_MAX];

    if (!from || snprintf(source, sizeof source, "%s/%s", from, RUN_RANKS) >=
                     (int)sizeof source)
        return 0;
    if (!realpath(source, absolute))
        return 0;
    snprintf(target, sizeof target, "%.*s/%s", PATH_MAX - 16, to, RUN_RANKS);
    if (symlink(absolute, target))
        return err_set(err, "%s: %m", target);
    return 0;
}

static int traces_change(const struct run *run, const struct job_change *change,
                         const char *to, struct layers_report *report,
                         struct err *err)
{
    const struct layers_change layers = {
        .layers = change->layers,
        .recorded = change->recorded,
        .prefix = *change->name ? change->name : NULL,
    };
    char path[PATH_MAX];

    for (size_t i = 0; i < run->count; i++) {
        const struct run_trace *t = &run->traces[i];
        run_trace_path(to, t->process == RUN_NO_PROCESS ? 0 : t->process, path,
                       sizeof path);
        if (layers_change(&layers, t->path, path, report, err))
            return -1;
    }
    return ranks_link(run->directory, to, err);
}

/* "6 layers (blocks) in place of 4" */
static char *describe(const struct job_change *change,
                      const struct layers_report *report)
{
    return xasprintf(
        "%" PRIu32 " layers (%s) in place of %" PRIu32, change->layers,
        *report->prefix ? report->prefix : "by repetition", report->recorded);
}

static void note_profile(const struct replay_profile *p, struct result *result,
                         const struct layers_report *report)
{
    if (!p->why)
        result_note(result,
                    "a layer has %zu operations of the forward and %zu of the "
                    "backward, by repetition",
                    report->forward_ops, report->backward_ops);
    if (report->lists_scaled)
        result_note(result,
                    "the times of %" PRIu32 " kernels on lists of tensors were "
                    "multiplied by the ratio of the layers: a profile does not "
                    "say what is in the lists",
                    report->lists_scaled);
    if (report->steps_kept)
        result_note(result,
                    "%" PRIu32 " steps without the layers are as recorded",
                    report->steps_kept);
}

static int play(const struct replay_profile *p, const char *path,
                const struct layers_report *report, struct err *err)
{
    struct replay_profile as = *p;
    struct run run;
    struct result result;
    int status = CMD_RUN_FAILED;

    if (!run_open(&run, path, err)) {
        as.run = &run;
        if (!replay_profile_read(&as, &result, err)) {
            note_profile(p, &result, report);
            status = replay_profile_show(&as, &result, err);
        }
        result_fini(&result);
    }
    run_close(&run);
    return status;
}

int replay_changed(const struct replay_profile *p,
                   const struct job_change *change, struct err *err)
{
    struct layers_report report;
    struct scratch scratch;
    int status = CMD_RUN_FAILED;

    if (scratch_make(&scratch, err))
        return CMD_RUN_FAILED;
    if (!traces_change(p->run, change, scratch.path, &report, err)) {
        struct replay_profile as = *p;
        char *changed = describe(change, &report);
        as.changed = changed;
        status = play(&as, scratch.path, &report, err);
        free(changed);
    }
    scratch_remove(&scratch);
    return status;
}
