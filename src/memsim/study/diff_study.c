/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/diff_study.h"

static bool is_attributed(const struct result *r)
{
    for (struct result_walk w = {NULL}; result_walk_next(r, &w);)
        if (w.device->attribution)
            return true;
    return false;
}

static int check_side(const struct input_run *side,
                      const struct diff_question *q, struct err *err)
{
    const struct result *r = &side->file.result;

    if (!r->rank_count)
        return err_set(err,
                       "%s: that run used no GPU: there is nothing to "
                       "compare",
                       side->name);
    if (!q->peaks && !is_attributed(r))
        return err_set(err,
                       "%s: does not tell whose memory it is; run it again "
                       "without --no-modules, or give --peaks",
                       side->name);
    return 0;
}

/* A gate that cannot be judged fails. */
static int check_times(const struct diff_question *q, struct diff_report *r,
                       struct err *err)
{
    if (time_limit_parse("fail-slower", q->fail_slower, &r->slower_limit, err))
        return -1;
    if (r->time->known)
        return 0;
    return err_set(err, "--fail-slower: %s has no step time",
                   time_slowest(r->diff->before) ? r->after : r->before);
}

/* Both are open. */
static int compare_runs(struct diff_study *d, const struct diff_question *q,
                        struct err *err)
{
    struct diff_report *r = &d->report;
    int rc = -1;

    diff_make(&d->diff, &d->before.file.result, &d->after.file.result);
    time_diff_make(&d->time, &d->before.file.result, &d->after.file.result);
    *r = (struct diff_report){.diff = &d->diff,
                              .before = q->before,
                              .after = q->after,
                              .time = &d->time,
                              .limits_time = q->fail_slower};
    if ((!q->fail_above || !diff_limit_parse(q->fail_above, &r->limit, err)) &&
        (!q->fail_slower || !check_times(q, r, err)))
        rc = d->diff.device_count
                 ? 0
                 : err_set(err, "%s and %s have no GPU of a rank in common",
                           r->before, r->after);
    if (!rc) {
        diff_report_init(r);
        return 0;
    }
    time_diff_fini(&d->time);
    diff_fini(&d->diff);
    return -1;
}

int diff_study_open(struct diff_study *d, const struct diff_question *q,
                    struct err *err)
{
    *d = (struct diff_study){.before.name = q->before, .after.name = q->after};
    if (input_run_open(&d->before, err))
        return -1;
    if (!input_run_open(&d->after, err)) {
        if (!check_side(&d->before, q, err) && !check_side(&d->after, q, err) &&
            !compare_runs(d, q, err))
            return 0;
        input_run_close(&d->after);
    }
    input_run_close(&d->before);
    return -1;
}

void diff_study_close(struct diff_study *d)
{
    diff_report_fini(&d->report);
    time_diff_fini(&d->time);
    diff_fini(&d->diff);
    input_run_close(&d->after);
    input_run_close(&d->before);
}
