/* SPDX-License-Identifier: Apache-2.0
 * A cluster of which only the GPU and the width of its nodes are known,
 * "h100-sxm-80gb:4": links by data sheets, and the adapters that nodes with
 * such GPUs usually have. */
#ifndef MEMSIM_FITS_CLUSTER_GPU_H
#define MEMSIM_FITS_CLUSTER_GPU_H

#include "fits/cluster.h"

#define CLUSTER_WIDTH_MAX 1024 /* GPUs of a node */

/* Is NAME "GPU:N"? Then writes GPU to GPU, which has SIZE bytes, and N to
 * *WIDTH. GPU may be any text. */
bool cluster_gpu_parse(const char *name, char *gpu, size_t size,
                       uint32_t *width);

/* Makes NAME's cluster. Returns 0, or -1: NAME is not "GPU:N", or there is no
 * such GPU. */
int cluster_gpu_make(const char *name, struct cluster *cluster,
                     struct err *err);

#endif
