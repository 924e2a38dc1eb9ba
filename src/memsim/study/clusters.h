/* SPDX-License-Identifier: Apache-2.0
 * Clusters that follow from a GPU, and GPUs that follow from a cluster. */
#ifndef MEMSIM_MEMSIM_STUDY_CLUSTERS_H
#define MEMSIM_MEMSIM_STUDY_CLUSTERS_H

#include "fits/cluster.h"
#include "memsim/study/options.h"

/* The name of the cluster to assume for several nodes of LOCAL times GPU (a
 * name or a file), where none is given, and what it is; end CLUSTER with
 * cluster_fini. NULL: there is no such GPU. The name is valid until the next
 * call. */
const char *study_cluster_assumed(const char *gpu, uint32_t local,
                                  struct cluster *cluster);

/* What was recorded on nodes of a GPU that were assumed is replayed on nodes of
 * GPU. */
void study_cluster_follow(struct study_options *options, const char *gpu);

/* The name of the GPU of OPTIONS' cluster, where the catalogue has it, valid
 * until the next call; else GPU, and WHY says that it has not. */
const char *study_cluster_gpu(const struct study_options *options,
                              const char *gpu, struct err *why);

#endif
