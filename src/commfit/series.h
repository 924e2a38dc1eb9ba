/* SPDX-License-Identifier: Apache-2.0
 * The measurements of one collective on one number of nodes, by size: what a
 * curve is fitted to. */
#ifndef MEMSIM_COMMFIT_SERIES_H
#define MEMSIM_COMMFIT_SERIES_H

#include "commfit/bench.h"

#define SERIES_SIZES 64 /* more are gathered into as many, evenly by log(S) */

struct series_point {
    double bytes;
    double us[2];     /* median; out of place, in place */
    double raw_us[2]; /* before outliers were set aside */
    bool measured[2]; /* false: the other placement's value stands in */
};

struct series {
    enum fit_coll coll;
    uint32_t nodes, gpus;
    uint32_t count;
    struct series_point points[SERIES_SIZES]; /* by size, increasing */
    /* The curve that these points give, where it is known already; NULL: it is
     * to be fitted. Borrowed. */
    const struct fit_curve *known;
};

/* All series of one collective with one number of GPUs a node. */
struct series_family {
    enum fit_coll coll;
    uint32_t gpus;
    uint32_t count;
    struct series *series; /* by nodes, increasing */
};

struct series_set {
    struct fit_machine machine; /* what data sheets say */
    bool draft; /* a refit for scores: a level has one sigmoid */
    uint32_t count;
    struct series_family *families;
};

/* A point that stands so far from its neighbours (or from its own other
 * sample) that no curve should follow it. */
struct outlier {
    enum fit_coll coll;
    uint32_t nodes, gpus;
    double bytes;
    bool in_place;
    double us, expected_us;
};

struct outliers {
    size_t count, capacity;
    struct outlier *items;
};

/* Makes the series of B, which is sorted. A series of one size alone is
 * dropped, and listed in B. The caller ends *SET with series_fini. */
void series_make(struct bench *b, struct series_set *set);

void series_fini(struct series_set *set);

/* The points that FIT's curves still tell: the sizes of their tables; of a form
 * without one, doublings of its smallest size. */
void series_of_fit(const struct fit *fit, struct series_set *set);

/* Sets the outliers of all series aside, and lists them (where LIST is not
 * NULL; the caller frees its items). */
void series_clean(struct series_set *set, struct outliers *list);

/* A copy of SET without the points for which LEAVE_OUT says so, and without
 * series left with fewer than two sizes. */
typedef bool series_leave_out(const struct series *s, uint32_t index,
                              const void *arg);
void series_copy(const struct series_set *set, series_leave_out *leave_out,
                 const void *arg, struct series_set *copy);

#endif
