/* SPDX-License-Identifier: Apache-2.0
 * Reads fits/NAME.json. */
#ifndef MEMSIM_FITS_FIT_READ_H
#define MEMSIM_FITS_FIT_READ_H

#include <stddef.h>

#include "common/base/err.h"
#include "runtime/nccl/fit.h"

/* Reads LENGTH bytes of JSON; ORIGIN stands for the file in messages. Every
 * number is checked, so that evaluation needs no checks. Returns 0 or -1; the
 * caller ends *FIT with fit_fini, after a success only. */
int fit_load_text(const char *json, size_t length, const char *origin,
                  struct fit *fit, struct err *err);

/* The same from a file; cluster_load (cluster.h) knows names too. */
int fit_load(const char *path, struct fit *fit, struct err *err);

void fit_fini(struct fit *fit);

#endif
