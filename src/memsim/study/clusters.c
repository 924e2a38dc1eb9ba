/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/clusters.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/share.h"
#include "common/catalogue/gpu.h"
#include "fits/cluster_gpu.h"
#include "fits/machine.h"

const char *study_cluster_gpu(const struct study_options *options,
                              const char *gpu, struct err *why)
{
    static char name[sizeof((struct gpu *)0)->name];
    struct cluster cluster;
    struct err ignored = {""};
    struct gpu found;

    if (!options->cluster || cluster_load(options->cluster, &cluster, &ignored))
        return gpu;
    if (!machine_gpu(cluster.gpu, &found)) {
        snprintf(name, sizeof name, "%s", found.name);
        gpu = name;
    } else {
        err_set(why, "--cluster %s: its GPU '%s' is not in the catalogue",
                options->cluster, cluster.gpu);
    }
    cluster_fini(&cluster);
    return gpu;
}

const char *study_cluster_assumed(const char *gpu, uint32_t local,
                                  struct cluster *cluster)
{
    static char name[PATH_MAX + 16];
    char path[PATH_MAX];
    struct err ignored = {""};

    if (share_is_path(gpu) && realpath(gpu, path))
        gpu = path;
    snprintf(name, sizeof name, "%s:%" PRIu32, gpu, local);
    return cluster_load(name, cluster, &ignored) ? NULL : name;
}

void study_cluster_follow(struct study_options *options, const char *gpu)
{
    char own[PATH_MAX];
    struct cluster cluster;
    uint32_t width;

    if (!options->cluster ||
        !cluster_gpu_parse(options->cluster, own, sizeof own, &width))
        return;
    const char *name = study_cluster_assumed(gpu, width, &cluster);
    if (!name)
        return;
    options->cluster = name;
    cluster_fini(&cluster);
}
