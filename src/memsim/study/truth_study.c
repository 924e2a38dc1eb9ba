/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/truth_study.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "fits/cost_fit.h"
#include "fitting/fit_trace.h"
#include "fitting/run_ops.h"
#include "memsim/run/run.h"
#include "memsim/study/corrections.h"
#include "memsim/study/study_time.h"
#include "memsim/time/truth_blocks.h"

/* Factors that a GPU's own differences explain, not other work. */
#define SCALE_LEAST 0.05
#define SCALE_MOST  20

/* --- both runs ------------------------------------------------------------ */

static int trace_open(struct truth_input *i, struct truth_side *side,
                      const struct study_options *options, struct err *err)
{
    struct study_time time;
    struct run traces;
    int rc = -1;

    if (run_open(&traces, i->input.dir.path, err))
        return -1;
    const struct run_trace *first = run_next_process(&traces, NULL);
    if (!first)
        err_set(err, "%s: it has no trace", i->input.name);
    else if (!study_time_init(&time, options, &i->input.file.result.gpu,
                              err)) {
        i->trace = xstrdup(first->path);
        rc = truth_side_read(side, first->path, &time.timeline.price, err);
        study_time_fini(&time);
    }
    run_close(&traces);
    return rc;
}

static int half_open(struct truth_input *i, struct truth_half *half,
                     const char *name, const struct study_options *options,
                     struct err *err)
{
    *i = (struct truth_input){.input.name = name};
    if (input_run_open(&i->input, err))
        return -1;
    const struct result *r = &i->input.file.result;
    int rc = -1;
    if (!i->input.is_dir || !r->rank_count || !r->ranks[0].device_count)
        err_set(err,
                "%s: --truth compares directories of `memsim run -o' whose "
                "command used a GPU",
                name);
    else
        rc = trace_open(i, &half->side, options, err);
    half->name = name;
    half->result = r;
    if (rc) {
        free(i->trace);
        input_run_close(&i->input);
    }
    return rc;
}

static void half_close(struct truth_input *i, struct truth_half *half)
{
    free(i->trace);
    truth_side_fini(&half->side);
    input_run_close(&i->input);
}

int truth_study_open(struct truth_study *s, const char *estimate,
                     const char *run, const struct study_options *options,
                     struct err *err)
{
    *s = (struct truth_study){.truth = {.run.name = run}};
    if (half_open(&s->estimate, &s->truth.estimate, estimate, options, err))
        return -1;
    if (!half_open(&s->run, &s->truth.run, run, options, err))
        return 0;
    half_close(&s->estimate, &s->truth.estimate);
    return -1;
}

void truth_study_close(struct truth_study *s)
{
    half_close(&s->run, &s->truth.run);
    half_close(&s->estimate, &s->truth.estimate);
}

/* --- what was learnt ------------------------------------------------------ */

/* That of ESTIMATE_BYTES in C; NULL: none. */
static struct corrected_workspace *workspace_of(struct corrections *c,
                                                uint64_t estimate_bytes)
{
    for (uint32_t i = 0; i < c->workspace_count; i++)
        if (c->workspaces[i].estimate_bytes == estimate_bytes)
            return &c->workspaces[i];
    return NULL;
}

#define SEVERAL UINT64_MAX /* sizes in the run: it is not known which */

static void workspaces_drop(struct corrections *c)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < c->workspace_count; i++)
        if (c->workspaces[i].run_bytes != SEVERAL)
            c->workspaces[left++] = c->workspaces[i];
    c->workspace_count = left;
}

static void workspaces_make(const struct truth *t, struct corrections *c)
{
    struct truth_walk at = {0};
    struct truth_pair p;

    while (truth_walk_next(&t->estimate.side, &t->run.side, &at, &p)) {
        uint64_t x = p.estimate ? p.estimate->requested_bytes : 0;
        uint64_t y = p.run ? p.run->requested_bytes : 0;
        struct corrected_workspace *known = workspace_of(c, x);

        if (known && known->run_bytes != y)
            known->run_bytes = SEVERAL;
        else if (!known && x != y && x &&
                 c->workspace_count < CORRECTIONS_WORKSPACES)
            c->workspaces[c->workspace_count++] =
                (struct corrected_workspace){x, y};
    }
    workspaces_drop(c);
}

static void corrections_make(const struct truth *t, struct corrections *c)
{
    const struct result_device *a = &t->estimate.result->ranks[0].devices[0];
    const struct result_device *b = &t->run.result->ranks[0].devices[0];

    *c = (struct corrections){
        .context_bytes = b->context_bytes,
        .libraries_more_bytes =
            (int64_t)b->libraries_bytes - (int64_t)a->libraries_bytes};
    snprintf(c->gpu, sizeof c->gpu, "%s",
             t->estimate.result->gpu.name);
    for (int f = 0; f < WORK_FAMILIES; f++) {
        double estimate = t->estimate.side.family_ns[f];
        double factor =
            estimate > 0 ? t->run.side.family_ns[f] / estimate : 0;
        bool same = t->estimate.side.family_count[f] ==
                    t->run.side.family_count[f];

        if (same && factor > SCALE_LEAST && factor < SCALE_MOST)
            c->scale[f] = factor;
    }
    workspaces_make(t, c);
    for (size_t i = 0; i < t->run.side.convolution_count; i++) {
        const struct truth_convolution *v = &t->run.side.convolutions[i];
        corrections_add(c, v->operation, v->text, v->workspace_bytes);
    }
}

/* What the fit has is not scaled once more. */
static void scale_leave(struct corrections *c, const struct trace_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++)
        c->scale[ops->kernels[i].work.family] = 0;
}

/* The times of RUN's kernels and products, by name and by shape: which ones
 * NVIDIA's libraries chose is in them. */
static int fit_save(const struct truth_study *s, struct corrections *c,
                    const char *path, struct err *err)
{
    const struct gpu *gpu = &s->truth.estimate.result->gpu;
    struct trace_ops ops = {.count = 0};
    struct err none = {""};
    struct cost_gpu limits;
    struct fit_trace fit;

    if (run_ops_read(&ops, s->run.trace, &none)) /* a run without kernels */
        err_clear(&none);
    struct cost_image *image = cost_fit_load(gpu, NULL, err);
    int rc = image ? 0 : -1;
    if (!rc) {
        cost_gpu_set(gpu, &limits);
        fit_trace_run(&fit, &ops, gpu->name, &limits, image);
        scale_leave(c, &ops);
        c->fit = &fit;
        rc = corrections_write(c, path, err);
        fit_trace_fini(&fit);
    }
    free(image);
    trace_ops_fini(&ops);
    return rc;
}

int truth_study_learn(const struct truth_study *s, const char *path,
                      struct err *err)
{
    const struct truth *t = &s->truth;
    struct corrections c;

    if (!t->run.side.measured)
        return err_set(err, "%s: it has no times of a GPU to learn from",
                       t->run.name);
    corrections_make(t, &c);
    int rc = fit_save(s, &c, path, err);
    corrections_fini(&c);
    return rc;
}
