/* SPDX-License-Identifier: Apache-2.0
 * How long a NCCL collective lasts on a fitted cluster. Pure: the same query
 * gets the same bits, in commfit and in memsim. */
#ifndef MEMSIM_RUNTIME_NCCL_COST_NCCL_H
#define MEMSIM_RUNTIME_NCCL_COST_NCCL_H

#include "runtime/nccl/cost_tuning.h"
#include "runtime/nccl/fit.h"

/* Why an answer is worth less than a measurement of just that. */
enum cost_nccl_flag {
    COST_NCCL_BELOW = 1 << 0,       /* smaller than any size measured */
    COST_NCCL_ABOVE = 1 << 1,       /* larger */
    COST_NCCL_BETWEEN = 1 << 2,     /* node count between measured ones */
    COST_NCCL_BEYOND = 1 << 3,      /* ... or outside them */
    COST_NCCL_OTHER_WIDTH = 1 << 4, /* measured with other GPUs a node */
    COST_NCCL_OTHER_COLL = 1 << 5,  /* from another collective's curves */
    COST_NCCL_FORMULA = 1 << 6,     /* from the link levels alone */
    COST_NCCL_NO_QUANTILE = 1 << 7, /* the data has means only */
    COST_NCCL_FALLBACK = 1 << 8,    /* the model asked for does not reach */
    COST_NCCL_SHARED = 1 << 9,      /* the network's other users slow it down */
    COST_NCCL_OTHER_LINKS = 1 << 10, /* measured inside a rack or node only */
    COST_NCCL_SHEET = 1 << 11, /* the GPU's data sheet and NCCL's latencies */
};

#define COST_NCCL_FLAGS 12

struct cost_nccl_query {
    enum fit_coll coll;
    uint32_t nodes;         /* at least 1 */
    uint32_t gpus_per_node; /* at least 1 */
    double bytes;           /* as nccl-tests counts, and TRACE_COLLECTIVE */
    bool in_place;
    enum fit_model model; /* FIT_MODEL_DEFAULT: what the fit thinks best */
    double quantile;      /* 0: the mean; 0.5 to 0.99: of the ranks' times */
    /* How many collectives of this kind use each node's network at the same
     * time, this one included; 0 or 1: it is alone. */
    double users;
    enum cost_algo algo; /* COST_ALGO_AUTO: as NCCL chooses */
};

struct cost_nccl_answer {
    double us;
    double low_us, high_us; /* four of five measurements lie between them */
    unsigned flags; /* of cost_nccl_flag; 0: measured there */
    double error; /* relative, the median to expect */
};

/* Answers QUERY. Returns 0, or -1 where the fit has nothing that could. One
 * rank alone takes no time. */
int cost_nccl(const struct fit *fit, const struct cost_nccl_query *query,
              struct cost_nccl_answer *answer);

/* The algorithm that NCCL takes for QUERY, by its own model; COST_ALGO_AUTO: it
 * has no choice. */
enum cost_algo cost_nccl_algo(const struct fit *fit,
                              const struct cost_nccl_query *query);

/* What one node's network carries each way, in 1e9 bytes a second: the most
 * that any curve of FIT on several nodes reaches. 0: it has no such curve. */
double cost_nccl_network_gbps(const struct fit *fit);

/* What FLAG (one of them) is called in JSON, and what it means for a report. */
const char *cost_nccl_flag_name(unsigned flag);
const char *cost_nccl_flag_text(unsigned flag);

/* t(S) of FAMILY, one of FIT's, by its curves alone; what commfit scores with
 * curves left out. Adds to *FLAGS. FAMILY has at least one curve. */
double cost_nccl_curves_us(const struct fit *fit,
                           const struct fit_family *family,
                           const struct cost_nccl_query *query,
                           unsigned *flags);

/* How much of a measurement of BYTES each of an update's size ranges takes:
 * hats at 1 KiB, 256 KiB, 16 MiB and 1 GiB, flat outside; they add up to 1. */
void cost_nccl_hats(double bytes, double hats[FIT_HATS]);

#endif
