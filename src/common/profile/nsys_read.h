/* SPDX-License-Identifier: Apache-2.0
 * Reads an SQLite export of Nsight Systems (`nsys export --type sqlite`): the
 * events of CUDA and NVTX, as those of a Kineto trace. The schema differs
 * between versions: a column is found by its name, and what is absent is not
 * known. Nothing in the file is trusted: it is opened read-only, without
 * extensions, views, triggers and virtual tables, and a row is in memory at a
 * time (of StringIds: all).
 *
 *   CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET   operations
 *   CUPTI_ACTIVITY_KIND_RUNTIME                    calls of runtime and driver
 *   NVTX_EVENTS                                    ranges; steps by their names
 *   TARGET_INFO_GPU                                the GPU */
#ifndef MEMSIM_COMMON_PROFILE_NSYS_READ_H
#define MEMSIM_COMMON_PROFILE_NSYS_READ_H

#include "common/profile/kineto_read.h"

#define NSYS_PROCESSES_MAX 64

/* The processes that used a GPU, as the file numbers them. */
struct nsys_processes {
    int64_t ids[NSYS_PROCESSES_MAX];
    size_t count;
};

/* Is the file PATH an SQLite database? */
bool nsys_is(const char *path);

/* Finds the processes of the file PATH, at least one. Returns 0 or -1. */
int nsys_processes_read(const char *path, struct nsys_processes *processes,
                        struct err *err);

/* Reads the events of PROCESS. As kineto_read. */
int nsys_read(const char *path, int64_t process, kineto_take *take,
              void *context, struct kineto_info *info, struct err *err);

#endif
