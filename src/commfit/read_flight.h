/* SPDX-License-Identifier: Apache-2.0
 * Dumps of PyTorch's flight recorder (torch.distributed, TORCH_FR_DUMP_*), as
 * pickle or JSON. Pickles are decoded, never executed. */
#ifndef MEMSIM_COMMFIT_READ_FLIGHT_H
#define MEMSIM_COMMFIT_READ_FLIGHT_H

#include "commfit/bench.h"

struct cJSON;

/* Whether ROOT is such a dump. */
bool flight_is(const struct cJSON *root);

/* Takes in every entry of ROOT that has a duration (recorded with
 * TORCH_NCCL_ENABLE_TIMING=1) and says what it moved among whom. Returns 0 or
 * -1. */
int read_flight(struct bench *b, const struct cJSON *root, const char *source,
                struct err *err);

/* The same of a pickle of LENGTH bytes. */
int read_flight_pickle(struct bench *b, const char *data, size_t length,
                       const char *path, const char *source, struct err *err);

#endif
