/* SPDX-License-Identifier: Apache-2.0
 * NCCL kernels in a PyTorch profiler trace. */
#ifndef MEMSIM_COMMFIT_READ_KINETO_H
#define MEMSIM_COMMFIT_READ_KINETO_H

#include "commfit/bench.h"

struct cJSON;

/* Takes in every NCCL kernel of ROOT that says what it moved. Kernels wait for
 * their peers: of equal calls the fastest is nearest the collective itself, so
 * times are marked as single ranks'. Returns 0 or -1. */
int read_kineto(struct bench *b, const struct cJSON *root, const char *source,
                struct err *err);

#endif
