/* SPDX-License-Identifier: Apache-2.0
 * Which experts a router chooses where its values are not known (--routing). */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_ROUTING_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#define ROUTING_EXPERTS 1024 /* what chooses among more is no router */

/* How likely each of COUNT experts is, up to the expert in CUMULATIVE[i]. */
struct routing {
    uint64_t seed, site;
    uint32_t count;
    double cumulative[ROUTING_EXPERTS];
};

/* Sets R for a choice of K of COUNT experts in each of ROWS rows, by the module
 * that is at work: the same in each of its calls. False: all are chosen equally
 * often; *WHY is then what the user is to know of it, or NULL. */
bool routing_begin(struct routing *r, uint64_t count, uint64_t k, uint64_t rows,
                   const char **why);

/* K different experts for ROW, into CHOSEN. */
void routing_choose(const struct routing *r, uint64_t row, uint64_t k,
                    uint32_t *chosen);

#endif
