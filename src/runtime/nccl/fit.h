/* SPDX-License-Identifier: Apache-2.0
 * A fitted cluster, as fits/NAME.json holds it: commfit writes it,
 * src/fits reads it and cost_nccl.c evaluates it. Sizes are those of
 * nccl-tests: the bytes of the whole buffer (for all-gather the whole output),
 * times are in microseconds, bandwidths in 1e9 bytes a second. */
#ifndef MEMSIM_RUNTIME_NCCL_FIT_H
#define MEMSIM_RUNTIME_NCCL_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define FIT_SCHEMA       1
#define FIT_LEVELS       4   /* intra-node, inter-node, and room for more */
#define FIT_PIECES       4   /* sigmoids of one curve */
#define FIT_KNOTS_MAX    128 /* of one curve */
#define FIT_CURVES_MAX   64  /* node counts of one family */
#define FIT_FAMILIES_MAX 256
#define FIT_TERMS        8 /* of the regression */
#define FIT_HATS         4 /* size ranges that an update moves on their own */
#define FIT_QUANTILES    4

enum fit_coll {
    FIT_ALL_REDUCE,
    FIT_ALL_GATHER,
    FIT_REDUCE_SCATTER,
    FIT_BROADCAST,
    FIT_REDUCE,
    FIT_ALLTOALL,
    FIT_SENDRECV,
    FIT_GATHER,
    FIT_SCATTER,
    FIT_COLL_COUNT,
};

enum fit_level_index { FIT_INTRA, FIT_INTER };

/* bandwidth(S) = limit / (1 + exp(-steepness (log(S + 1) - midpoint))) + base
 * for sizes from FROM_BYTES to the next piece's. */
struct fit_sigmoid {
    double from_bytes;
    double latency_us; /* of a curve's piece; a level has its own */
    double limit_gbps;
    double steepness;
    double midpoint;
    double base_gbps;
};

/* One link level: how fast it is by the size of the data. */
struct fit_level {
    char name[16];
    bool known; /* false: the data has nothing to say about it */
    double latency_us;
    uint32_t piece_count;
    struct fit_sigmoid pieces[FIT_PIECES];
};

/* A size measured (or the median of several measurements of it). */
struct fit_knot {
    double bytes;
    double us[2]; /* out of place, in place */
};

enum fit_form {
    FIT_CHAIN,   /* t = alpha + beta S between one knot and the next */
    FIT_SIGMOID, /* t = latency + S / bandwidth(S), by pieces, times a
                    correction where there are knots */
};

/* One collective on one number of nodes. */
struct fit_curve {
    uint32_t nodes;
    enum fit_form form;
    double bytes_min, bytes_max; /* measured; beyond is extrapolation */
    uint32_t knot_count;
    struct fit_knot *knots;      /* by size, strictly increasing; of
                                    FIT_SIGMOID factors instead of times */
    uint32_t piece_count;        /* FIT_SIGMOID */
    struct fit_sigmoid pieces[FIT_PIECES];
};

/* t_min ~ 1, t, l, P, S, tS, tP, lS with t and l of the published formula;
 * used inside the ranges only. */
struct fit_regression {
    bool known;
    double terms[FIT_TERMS];
    double bytes_min, bytes_max;
    double ranks_min, ranks_max;
};

/* t_q / t = 1 + max(0, intercept + slope x), x = P log(S) inside the range. Of
 * single times, or, where the data has means alone, of figures that were
 * measured again. */
struct fit_straggler {
    bool known;
    double intercept[FIT_QUANTILES]; /* of t_50, t_75, t_95, t_99 */
    double slope[FIT_QUANTILES];
    double x_min, x_max; /* both 0: any x */
    bool of_means;
};

/* What updates have moved: log(t) += sum of shift[i] hat_i(log S). */
struct fit_update {
    uint32_t count; /* measurements taken in; 0: nothing to add */
    double shift[FIT_HATS];
    double covariance[FIT_HATS][FIT_HATS];
};

/* Errors on what the fit had not seen; negative: not measured. */
struct fit_errors {
    double size_median, size_p95;
    double between_median; /* node counts between known ones */
    double beyond_median;  /* the next larger node count */
    /* The same as 80% quantiles of |log(predicted / measured)|. */
    double size_band, between_band, beyond_band;
};

enum fit_model {
    FIT_MODEL_DEFAULT,   /* what the family says */
    FIT_MODEL_CURVES,    /* measured curves, carried between node counts */
    FIT_MODEL_FORMULA,   /* the corrected hierarchical formulas */
    FIT_MODEL_PUBLISHED, /* the formulas as published */
    FIT_MODEL_REGRESSION,
    FIT_MODEL_COUNT,
};

/* One collective with one number of GPUs a node. */
struct fit_family {
    enum fit_coll coll;
    uint32_t gpus_per_node;
    enum fit_model model; /* at node counts measured */
    /* ... between them and outside; FIT_MODEL_DEFAULT: curves. */
    enum fit_model between_model, beyond_model;
    uint32_t curve_count;
    struct fit_curve *curves; /* by nodes, strictly increasing; at least 1 */
    struct fit_regression regression;
    struct fit_straggler straggler;
    struct fit_update update;
    struct fit_errors errors;
};

/* The levels under each set of formulas: their data sees them differently. */
enum fit_formula { FIT_CORRECTED, FIT_PUBLISHED, FIT_FORMULA_COUNT };

/* What data sheets say of the machine beside its measurements. */
struct fit_machine {
    double link_gbps;   /* a GPU's NVLinks each way, as NCCL rates them; 0:
                           not known, or none */
    uint32_t rack_gpus; /* GPUs that NVLink joins across nodes (NVL72: 72); 0:
                           those of a node */
    bool nvls;          /* NVSwitch that reduces */
};

struct fit {
    char name[64];
    char gpu[64]; /* as the benchmark printed it, or empty */
    struct fit_machine machine;
    struct fit_level levels[FIT_FORMULA_COUNT][FIT_LEVELS];
    uint32_t family_count;
    struct fit_family *families; /* by collective and GPUs a node */
};

/* Returns 0, or -1 and says what in FIT is not finite, not positive or out of
 * order. */
int fit_check(const struct fit *fit, const char *origin, struct err *err);

/* "all_reduce"; what nccl-tests calls its programs, without "_perf". */
const char *fit_coll_name(enum fit_coll coll);

/* Finds the collective that NAME means: "all_reduce", "allreduce",
 * "AllReduce_perf". Returns 0 or -1. */
int fit_coll_find(const char *name, enum fit_coll *coll);

/* The collective that FUNCTION of nccl.h is: "ncclAllReduce". A send or a
 * receive is a part of FIT_SENDRECV. Returns 0, or -1 with *COLL as it was. */
int fit_coll_of_call(const char *function, enum fit_coll *coll);

/* busbw / algbw with RANKS ranks, as nccl-tests defines it
 * (doc/PERFORMANCE.md there). */
double fit_coll_factor(enum fit_coll coll, double ranks);

const char *fit_model_name(enum fit_model model);

#endif
