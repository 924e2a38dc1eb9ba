/* SPDX-License-Identifier: Apache-2.0
 * Fits to JSON. */
#ifndef MEMSIM_COMMFIT_FIT_WRITE_H
#define MEMSIM_COMMFIT_FIT_WRITE_H

#include "commfit/score.h"
#include "commfit/series.h"

struct cJSON;

/* What a fit file tells beside the fit. */
struct fit_story {
    const struct bench *bench;
    const struct series_set *set;
    const struct scores *scores;
    const struct outliers *outliers;
};

/* The whole document; the caller deletes it. */
struct cJSON *fit_to_json(const struct fit *fit, const struct fit_story *story);

/* The rows of --eval as "predictions", each with what was measured. The caller
 * deletes it. */
struct cJSON *eval_to_json(const struct scores *scores);

/* What --json prints: the errors alone. */
struct cJSON *scores_to_json(const struct scores *scores);

/* One family's "update". */
struct cJSON *update_to_json(const struct fit_update *update);

/* Turns ROOT's numbers into their shortest texts that read back as the same
 * bits; cJSON alone drops the last one. */
void json_make_exact(struct cJSON *root);

/* Writes ROOT, made exact, to PATH as file_write does. Returns 0 or -1. */
int json_write(struct cJSON *root, const char *path, struct err *err);

#endif
