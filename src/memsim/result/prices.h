/* SPDX-License-Identifier: Apache-2.0
 * Prices of GPUs, and what a job costs by them. */
#ifndef MEMSIM_MEMSIM_RESULT_PRICES_H
#define MEMSIM_MEMSIM_RESULT_PRICES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct gpu_price {
    char *gpu; /* its name in the catalogue */
    double hour;
};

/* Of an hour of one GPU. All 0: none is known. */
struct prices {
    double all; /* of every GPU; 0: those of the list */
    struct gpu_price *list;
    size_t count;
};

/* Reads TEXT: "2.99"; "98.5/8", an hour of a node of 8; or a file like
 * {"h100-sxm-80gb": 2.99}. Returns 0, or -1 with ERR set; *PRICES is to be
 * given to prices_fini in both cases. */
int prices_read(struct prices *prices, const char *text, struct err *err);
void prices_fini(struct prices *prices);

/* For an hour of one GPU of that name; 0: not known. */
double prices_of(const struct prices *prices, const char *gpu);

/* The hours of GPUS, added up, for TOKENS at so many a second of the job. */
double gpu_hours_of(double tokens, double per_second, uint64_t gpus);

#endif
