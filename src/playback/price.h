/* SPDX-License-Identifier: Apache-2.0
 * What an operation of a trace costs on a GPU: its work, its price, and how the
 * simulator is to run it. */
#ifndef MEMSIM_PLAYBACK_PRICE_H
#define MEMSIM_PLAYBACK_PRICE_H

#include "common/catalogue/gpu.h"
#include "common/trace/op_trace.h"
#include "fits/cluster.h"
#include "runtime/cost/cost.h"
#include "runtime/nccl/cost_nccl.h"
#include "runtime/sim/sim.h"

struct price_options {
    const struct gpu *gpu;
    const struct cost_image *image; /* NULL: rooflines alone */
    const struct cluster *cluster;  /* NULL: collectives by the data sheet */
    double scale[WORK_FAMILIES];    /* factors of the prices; 0: 1 */
    double link[SIM_LINKS];         /* factors of links' speeds; 0: 1 */
    double quantile; /* of collectives' times among ranks; 0: the mean */
    double slow; /* factor of the times of this GPU's own work; 0: 1 */
};

struct price {
    struct cost_answer answer; /* ns 0: nothing runs on the device */
    enum work_family family;
    enum work_type type;
    double flops;
    bool is_part; /* a further kernel of a call: see struct work */
    uint32_t launches; /* likewise */
    enum sim_engine engine;
    uint32_t share; /* of compute, of SIM_WHOLE */
    uint32_t fill;  /* of the SMs that it gives work to, likewise */
    uint64_t longer_parts; /* it takes longer, by so many millionths of what was
                              submitted before it to its stream */
    enum sim_link link; /* of a collective */
    double link_bytes;  /* likewise: what a rank sends through it */
};

/* Where a collective's ranks are. */
struct price_place {
    uint32_t nodes;         /* 0: not known; then they fill nodes in order */
    uint32_t gpus_per_node; /* of these ranks */
    double users; /* collectives of its kind that use a node's network at the
                     same time, this one included */
    uint32_t ranks; /* of another width than was recorded; 0: as recorded */
};

struct pricer;

/* OPTIONS is copied, what it points to is borrowed. */
struct pricer *pricer_create(const struct price_options *options);
void pricer_destroy(struct pricer *p);

/* Sets the options' `slow'. Before the first price. */
void pricer_slow(struct pricer *p, double slow);

/* Prices OP, whose names are in NAMES; PLACE: a collective's, or NULL. */
void pricer_price(struct pricer *p, const struct op *op,
                  const struct trace_names *names,
                  const struct price_place *place, struct price *price);

/* Prices the call NAME of a collective whose record is C. */
void pricer_collective(struct pricer *p, const char *name,
                       const struct trace_collective *c,
                       const struct price_place *place, struct price *price);

/* The family of the kernel called NAME, of which nothing else is known. */
enum work_family pricer_family(struct pricer *p, uint32_t name,
                               const struct trace_names *names);

/* ANSWER takes SCALE times as long, its band as well. */
void price_scale(struct cost_answer *answer, double scale);

/* Reads "gemm=0.8" or "gemm=0.8,copy=2" into SCALE. Returns 0 or -1. */
int price_scale_parse(const char *text, double scale[WORK_FAMILIES],
                      struct err *err);

/* Reads "inter=2x" or "inter=2x,intra=0.5x" into LINK. Returns 0 or -1. */
int price_link_parse(const char *text, double link[SIM_LINKS], struct err *err);

#endif
