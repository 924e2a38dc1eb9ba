/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/compare_figures.h"

#include "memsim/report/text/time_report.h"
#include "memsim/result/gpu_need.h"
#include "memsim/result/result_verdict.h"

static uint64_t gpus_of(const struct result *r)
{
    uint64_t gpus = 0;

    for (size_t i = 0; i < r->rank_count; i++)
        gpus += result_rank_count(&r->ranks[i]) * r->ranks[i].device_count;
    return gpus;
}

/* Speed, and what the tokens of TERMS take. */
static void add_speed(struct compare_figures *f, const struct result *r,
                      const struct timing *t, const struct compare_terms *terms)
{
    f->step_ns = timing_step_ns(t);
    f->tokens = time_job_tokens(r);
    f->mfu = t->mfu;
    f->gpu_hours = gpu_hours_of(terms->tokens, f->tokens, f->gpus);
    if (terms->prices)
        f->cost = f->gpu_hours * prices_of(terms->prices, r->gpu.name);
}

struct compare_figures compare_figures_of(const struct result *r,
                                          const struct compare_terms *terms)
{
    struct compare_figures f = {0};

    if (!r)
        return f;
    for (struct result_walk w = {NULL}; result_walk_next(r, &w);) {
        f.known = true;
        if (w.device->peak_used_bytes < f.used)
            continue;
        f.used = w.device->peak_used_bytes;
        f.reserved = w.device->peak_reserved_bytes;
        f.allocated = w.device->peak_allocated_bytes;
        f.capacity = w.device->capacity_bytes;
        f.headroom = w.device->headroom_bytes;
        f.context = w.device->context_bytes;
    }
    const struct timing *t = time_slowest(r);
    f.code = r->code;
    f.gpus = gpus_of(r);
    if (t)
        add_speed(&f, r, t, terms);
    f.whole = !r->refused && result_is_whole(r);
    return f;
}

struct compare_catalogue compare_catalogue_load(void)
{
    struct compare_catalogue c = {NULL, 0};
    struct err err = {""};

    if (gpu_list_by_memory(&c.list, &c.count, &err))
        return (struct compare_catalogue){NULL, 0};
    return c;
}

const char *compare_smallest_gpu(const struct compare_catalogue *c,
                                 const struct compare_figures *f)
{
    const struct gpu_need need = {f->used, f->context, f->code};

    for (size_t i = 0; f->known && f->whole && i < c->count; i++)
        if (gpu_need_is_met(&need, &c->list[i]))
            return c->list[i].name;
    return NULL;
}
