/* SPDX-License-Identifier: Apache-2.0
 * Collecting models and measured shapes, then laying them out as an image. */
#ifndef MEMSIM_FITS_COST_BUILD_H
#define MEMSIM_FITS_COST_BUILD_H

#include "runtime/cost/cost_image.h"

struct err;

struct cost_part {
    struct cost_model model; /* all but where its state lies */
    void *state;             /* owned; model.bytes long */
    uint32_t times;          /* that it was fitted to; 0: not known */
};

/* Zeroed, it is empty. */
struct cost_build {
    char gpu[32];
    struct cost_part *parts;
    size_t count, capacity;
    struct cost_entry *entries;
    size_t entry_count, entry_capacity;
    uint32_t kernel_count; /* of the entries */
    struct cost_scale scales[WORK_FAMILIES];
};

/* Takes PART's state. */
void cost_build_add(struct cost_build *build, const struct cost_part *part);

/* The first time of a shape counts. */
void cost_build_measured(struct cost_build *build, uint64_t key, double ns);

/* The image, which the caller frees, or NULL where it does not hold together.
 */
struct cost_image *cost_build_image(const struct cost_build *build,
                                    const char *origin, struct err *err);

void cost_build_fini(struct cost_build *build);

/* Which models of a fit are needed. */
struct cost_need {
    const struct cost_build *known; /* not those that its models answer for */
    bool flat;                      /* of trees the mean */
    double weight;                  /* of products' trees; 0: not blended */
};

/* Reads a fit's JSON into BUILD (empty): what is needed, or all where NEED is
 * NULL. Returns 0 or -1. */
int cost_read(const char *json, size_t length, const char *origin,
              const struct cost_need *need, struct cost_build *build,
              struct err *err);

#endif
