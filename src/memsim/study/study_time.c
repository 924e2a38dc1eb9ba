/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/study_time.h"

#include <stdlib.h>
#include <string.h>

#include "fits/cost_fit.h"
#include "memsim/run/rundir.h"
#include "memsim/study/delay_options.h"

/* --stragglers, --delay and --change. */
static int init_job(struct study_time *t, const struct study_options *options,
                    struct err *err)
{
    if (options->stragglers &&
        stragglers_parse(options->stragglers, &t->timeline.stragglers, err))
        return -1;
    if (study_delay_read(options, &t->delay_table, err) ||
        study_delay_open(&t->delay_table, &t->delays, err))
        return -1;
    if (t->delay_table.count || *t->delay_table.library)
        t->timeline.delays = &t->delays;
    if (options->change && job_changes_parse(options->change, &t->changes, err))
        return -1;
    if (options->change)
        job_changes_apply(&t->changes, &t->timeline);
    return 0;
}

int study_time_init(struct study_time *t, const struct study_options *options,
                    const struct gpu *gpu, struct err *err)
{
    struct price_options *price = &t->timeline.price;

    *t = (struct study_time){.options = options};
    price->gpu = gpu;
    t->timeline.host_as_recorded = options->host_times != 0;
    if ((options->scale &&
         price_scale_parse(options->scale, price->scale, err)) ||
        study_host_factor(options, &t->timeline.host_factor, err))
        return -1;
    if ((options->link && price_link_parse(options->link, price->link, err)) ||
        study_quantile(options, &price->quantile, err))
        return -1;
    if (init_job(t, options, err))
        return -1;
    t->image = cost_fit_load(gpu, options->fit, err);
    if (!t->image)
        return -1;
    price->image = t->image;
    if (!options->cluster)
        return 0;
    if (cluster_load(options->cluster, &t->cluster, err)) {
        free(t->image);
        return -1;
    }
    t->has_cluster = true;
    price->cluster = &t->cluster;
    return 0;
}

void study_time_fini(struct study_time *t)
{
    job_changes_fini(&t->changes);
    if (t->has_cluster)
        cluster_fini(&t->cluster);
    free(t->image);
}

int study_gpu_name(const char *path, char *name, size_t bytes, struct err *err)
{
    struct trace_reader reader;
    struct trace_item item;
    int rc = 0;

    *name = '\0';
    if (trace_reader_open(&reader, path, err))
        return -1;
    while (!*name && (rc = trace_reader_next(&reader, &item, err)) > 0)
        if (item.head.kind == TRACE_DEVICE)
            snprintf(name, bytes, "%.*s", (int)item.head.text_bytes, item.text);
    trace_reader_close(&reader);
    if (!*name)
        return rc ? -1 : err_set(err, "%s: it used no GPU", path);
    return 0;
}

int study_gpu(const char *path, struct gpu *gpu, struct err *err)
{
    char name[64];

    if (study_gpu_name(path, name, sizeof name, err))
        return -1;
    return rundir_gpu(path, name, gpu) ? 0 : gpu_load(name, gpu, err);
}
