/* SPDX-License-Identifier: Apache-2.0
 * NCCL kernels in a PyTorch profiler trace. */
#ifndef MEMSIM_COMMFIT_READ_KINETO_H
#define MEMSIM_COMMFIT_READ_KINETO_H

#include <stdbool.h>
#include <stdio.h>

#include "commfit/bench.h"

/* Does TEXT, the beginning of a JSON file, look like a profile's? */
bool kineto_is_text(const char *text);

/* Takes in every NCCL kernel of FILE that says what it moved. Kernels wait for
 * their peers: of equal calls the fastest is nearest the collective itself, so
 * times are marked as single ranks'. The file is streamed; PATH is for errors,
 * SOURCE for notes. Returns 0 or -1. */
int read_kineto(struct bench *b, FILE *file, const char *path,
                const char *source, struct err *err);

/* Bytes of PyTorch's scalar type NAME ("BFloat16"); 0: not known. */
unsigned kineto_type_bytes(const char *name);

/* "[0, 1, 2, ...]": how many nodes of NODE_GPUS these SIZE ranks lie on. A long
 * list is cut short: then the ranks are taken as consecutive. */
uint32_t kineto_count_nodes(const char *ranks, uint32_t size,
                            uint32_t node_gpus);

#endif
