/* SPDX-License-Identifier: Apache-2.0
 * What commfit tells on the terminal. */
#ifndef MEMSIM_COMMFIT_FIT_REPORT_H
#define MEMSIM_COMMFIT_FIT_REPORT_H

#include "commfit/fit_write.h"

#include <stdio.h>

/* Rows taken and dropped, and why. */
void fit_report_bench(const struct bench *b, FILE *out);

/* The verdict: what each collective reaches, beside the data sheet, and where
 * the fit can be trusted. STORY may be NULL, where the fit is read from a file;
 * VERBOSE adds curves, levels, errors by model and size, and outliers. */
void fit_report_all(const struct fit *fit, const struct fit_story *story,
                    bool verbose, FILE *out);

/* Errors on other data, by collective and world size. */
void fit_report_eval(const struct scores *scores, FILE *out);

/* "median 2.1% p95 9.8% n 44": the last line of --eval. Returns whether there
 * was anything to sum up. */
bool fit_report_line(const struct scores *scores, FILE *out);

#endif
