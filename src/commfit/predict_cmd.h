/* SPDX-License-Identifier: Apache-2.0
 * The command `commfit predict'. */
#ifndef MEMSIM_COMMFIT_PREDICT_CMD_H
#define MEMSIM_COMMFIT_PREDICT_CMD_H

#include <stdio.h>

#include "common/base/err.h"
#include "common/base/options.h"

struct predict_settings {
    const char *nodes, *gpus, *size, *model, *algo, *json, *plot;
    double quantile, users;
    bool in_place;
};

extern const struct options predict_options;

/* Answers what SETTINGS and OPERANDS (a fit or a cluster's name, a collective)
 * ask for, on OUT and in the files that they name. Returns 0; -1 where a file
 * cannot be read or written, or where the fit has no answer; -2 where the
 * request is none. */
int predict_run(const struct predict_settings *settings,
                const struct operands *operands, FILE *out, struct err *err);

#endif
