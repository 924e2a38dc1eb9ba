/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/compare_figures.h"

#include <stdlib.h>
#include <string.h>

#include "memsim/report/time_report.h"

struct compare_figures compare_figures_of(const struct result *r)
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
    f.step_ns = t ? timing_step_ns(t) : 0;
    f.whole = r->verdict == VERDICT_FITS || r->verdict == VERDICT_OVER_LIMIT;
    return f;
}

static int by_memory(const void *x, const void *y)
{
    const struct gpu *a = x, *b = y;

    if (a->memory_bytes != b->memory_bytes)
        return a->memory_bytes < b->memory_bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

struct compare_catalogue compare_catalogue_load(void)
{
    struct compare_catalogue c = {NULL, 0};
    struct err err = {""};

    if (gpu_list(&c.list, &c.count, &err))
        return (struct compare_catalogue){NULL, 0};
    qsort(c.list, c.count, sizeof *c.list, by_memory);
    return c;
}

const char *compare_smallest_gpu(const struct compare_catalogue *c,
                                 const struct compare_figures *f)
{
    for (size_t i = 0; f->known && f->whole && i < c->count; i++) {
        const struct gpu *gpu = &c->list[i];
        if (gpu->is_variant)
            continue;
        uint64_t context = gpu->context_torch_bytes;
        uint64_t more = context > f->context ? context - f->context : 0;
        if (f->used + more <= gpu->memory_bytes)
            return gpu->name;
    }
    return NULL;
}
