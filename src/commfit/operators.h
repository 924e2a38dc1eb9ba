/* SPDX-License-Identifier: Apache-2.0
 * The command `commfit operators': fits a GPU's models to tables of measured
 * operators. `memsim fit' starts it. */
#ifndef MEMSIM_COMMFIT_OPERATORS_H
#define MEMSIM_COMMFIT_OPERATORS_H

#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "common/base/options.h"

struct operators_settings {
    const char *output, *gpu;
    uint32_t seed;
    bool simulated; /* takes tables that memsim made, too */
};

extern const struct options operators_options;

/* Fits the tables FILES as SETTINGS ask for, prints the errors on OUT, writes
 * the fit. Returns 0 or -1. */
int operators_run(const struct operators_settings *settings,
                  const struct operands *files, FILE *out, struct err *err);

#endif
