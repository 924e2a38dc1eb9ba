/* SPDX-License-Identifier: Apache-2.0
 * What --cluster names: a cluster that was measured (a fit), or one of which
 * only the data sheet is known (data/clusters). Both come as a fit. */
#ifndef MEMSIM_FITS_CLUSTER_H
#define MEMSIM_FITS_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "fits/network.h"
#include "runtime/nccl/fit.h"

struct cluster {
    char name[64];
    char gpu[64]; /* in the GPU catalogue, or as a benchmark printed it */
    char about[256];
    uint32_t gpus_per_node; /* on one link; 0: several widths were measured */
    uint32_t gpus_per_host; /* as many or fewer */
    bool measured;          /* false: the levels are all there is */
    bool by_gpu;            /* "GPU:N": its links are the usual ones */
    struct fit fit;
    struct network *network; /* between nodes; NULL: nothing is known of it */
};

/* Reads the cluster that NAME_OR_PATH says: "GPU:N" (cluster_gpu.h); a file of
 * either kind where it has a '/' or ends in .json; else a name of data/clusters
 * or of fits. Returns 0, or -1 with nothing to free; end it with cluster_fini.
 */
int cluster_load(const char *name_or_path, struct cluster *cluster,
                 struct err *err);

/* Reads a cluster from LENGTH bytes of JSON; ORIGIN stands for the file. */
int cluster_load_text(const char *json, size_t length, const char *origin,
                      struct cluster *cluster, struct err *err);

void cluster_fini(struct cluster *cluster);

/* The ranks of a node of which the job has LOCAL on a host (0: not known). Jobs
 * fill nodes: of a measured cluster the widest that was measured. */
uint32_t cluster_width(const struct cluster *cluster, uint32_t local);

/* Reads all of them, by name: the measured ones first. The caller ends each
 * and frees *LIST. Returns 0 or -1. */
int cluster_list(struct cluster **list, size_t *count, struct err *err);

#endif
