/* SPDX-License-Identifier: Apache-2.0
 * What an operation costs: one query, one answer, whichever model gives it.
 * Pure: no heap, no I/O, no clock; the same query gets the same bits. */
#ifndef MEMSIM_RUNTIME_COST_COST_H
#define MEMSIM_RUNTIME_COST_COST_H

#include <stdint.h>

#include "kernels/work.h"

/* What a price rests on, the surest first. */
enum cost_basis {
    COST_MEASURED, /* this shape was measured on this GPU */
    COST_FITTED,   /* by a model fitted to measurements of this GPU */
    COST_BORROWED, /* by another GPU's efficiencies at this one's peaks */
    COST_ESTIMATED, /* by efficiencies that times of whole steps imply */
    COST_ROOFLINE, /* by the GPU's median fitted efficiency */
    COST_FALLBACK, /* a policy: little is known of the work */
    COST_BASES,
};

struct cost_answer {
    uint64_t ns;
    uint64_t low_ns, high_ns; /* the band that 80% of held-out errors lie in */
    enum cost_basis basis;
    uint32_t flags; /* of the model; cost_flag_text() says what they mean */
};

/* The GPU's limits, from the catalogue; rates in 1e9 bytes and 1e12
 * operations a second. */
struct cost_gpu {
    double memory_gbps;
    double tflops[WORK_TYPES]; /* 0: cannot */
    double l2_bytes;
    double pcie_gbps, nvlink_gbps;
    uint32_t sm_count;
    uint32_t clock_mhz;
    uint32_t sm_threads, sm_blocks; /* that a multiprocessor holds */
    uint32_t capability; /* 90 for 9.0 */
};

/* A kernel's launch on the host, and from a kernel's end to the next one's
 * start: sim_cost.h's, for calls that launch many kernels. */
#define COST_LAUNCH_NS 4000
#define COST_GAP_NS    1000

struct gpu;

/* The limits of GPU, with PCIe's rate after its encoding and packet headers. */
void cost_gpu_set(const struct gpu *gpu, struct cost_gpu *limits);

/* The least time that the hardware could take: arithmetic at the peak, bytes
 * at the memory's rate where they do not fit in the L2 cache. A price is never
 * below it. A convolution's arithmetic counts a quarter: Winograd's transform
 * of 4 x 4 tiles needs no more multiplications. */
double cost_bound_ns(const struct cost_gpu *gpu, const struct work *work);

/* What a roofline with a floor says: FLOOR_NS + max(arithmetic at COMPUTE of
 * the peak, bytes at MEMORY of the memory's rate); of backward attention, whose
 * kernels follow each other, their sum. Of the bytes, as many as NEAR of the L2
 * cache come from there. */
struct cost_roofline {
    double floor_ns;
    double compute, memory; /* efficiencies, in (0, 1.5] */
    double near; /* share of the L2 cache, in [0, 1]; 0: all from memory */
};
double cost_roofline_ns(const struct cost_roofline *line,
                        const struct cost_gpu *gpu, const struct work *work);

/* The roofline of WORK's family and type where no fit answers. */
const struct cost_roofline *cost_roofline_default(const struct work *work);

/* The share of the L2 cache in which FAMILY's kernels usually find what those
 * before them left; 0: none. */
double cost_roofline_near(enum work_family family);

/* A model of some families. STATE is flat and read-only, in the image. */
struct cost_ops {
    const char *name; /* as in a fit's JSON: "roofline", "segments", "trees" */
    /* Prices WORK on GPU. Returns 0, or -1 where it has no answer. */
    int (*price)(const void *state, const struct cost_gpu *gpu,
                 const struct work *work, double *ns);
};

/* All models of one GPU behind one question: which model answers which family
 * is the fit's to say. IMAGE is a cost image (cost_image.h), mapped read-only;
 * NULL: rooflines alone. Always gives an answer. */
struct cost_image;
void cost_price(const struct cost_image *image, const struct cost_gpu *gpu,
                const struct work *work, struct cost_answer *answer);

/* Prices the kernel that has KEY (cost_kernel_key) by its measured time.
 * Returns 0, or -1 where IMAGE does not have it. */
int cost_price_kernel(const struct cost_image *image, uint64_t key,
                      struct cost_answer *answer);

/* Corrects ANSWER, the price of WORK, of which little is known, by what was
 * measured of the kernel of that name (cost_name_key) on other grids. */
void cost_correct_kernel(const struct cost_image *image, uint64_t key,
                         const struct work *work, struct cost_answer *answer);

const char *cost_basis_name(enum cost_basis basis);

#endif
