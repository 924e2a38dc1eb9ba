/* SPDX-License-Identifier: Apache-2.0
 * A fit that follows its cluster: recursive least squares on new times. */
#ifndef MEMSIM_COMMFIT_UPDATE_H
#define MEMSIM_COMMFIT_UPDATE_H

#include "commfit/bench.h"

/* Takes one measurement into U: LEFT is log(measured / predicted) with U as it
 * is, BYTES its size. */
void update_step(struct fit_update *u, double bytes, double left);

/* Reads FIT_PATH, takes in the measurements of FROM and writes the fit to
 * OUTPUT, all else in it unchanged. Says on OUT what moved. Returns 0 or -1. */
int update_file(const char *fit_path, const char *from, const char *output,
                FILE *out, struct err *err);

#endif
