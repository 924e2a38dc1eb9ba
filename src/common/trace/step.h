/* SPDX-License-Identifier: Apache-2.0
 * What a training step is, for everything that counts steps. Steps are
 * numbered from 0.
 *
 * Where optimizers step, step k + 1 begins with the first forward after step
 * k's optimizer, so that several backwards before one optimizer step
 * (accumulation) are one step; the last step ends with its optimizer. Work that
 * a stream captures is no step; each launch of its graph carries out the
 * forward and the optimizer that were captured. Without
 * optimizers each outermost module call is a step. Without modules the ranges
 * that a profiler or NVTX marks as steps are. */
#ifndef MEMSIM_COMMON_TRACE_STEP_H
#define MEMSIM_COMMON_TRACE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trace/trace_read.h"

/* The optimizer's rule alone, record by record. Zeroed, it is at the start. */
struct step_counter {
    unsigned step; /* the one that runs */
    bool begun;    /* a forward was seen */
    bool stepped;  /* the optimizer has, in this step */
};

/* Takes the phase of a PHASE record. Returns true where a step begins: at the
 * first forward, and at each first forward after an optimizer's step. */
bool step_counter_phase(struct step_counter *c, uint64_t phase);

/* How many steps are whole: their optimizer has stepped. */
unsigned step_counter_whole(const struct step_counter *c);

enum step_rule { STEP_NONE, STEP_OPTIMIZER, STEP_MODULE, STEP_RANGE };

/* "optimizer steps", for reports. */
const char *step_rule_name(enum step_rule rule);

/* Do records of KIND, work or waits for it, belong to a step? The last step
 * ends behind the last of them. */
bool step_is_work(unsigned kind);

/* Records are counted from 0 as the reader gives them. A step's records are
 * [first, end). */
struct step {
    uint64_t first, end;
    uint64_t first_ns, end_ns; /* of the trace's clock */
    bool warm_up; /* the first step, and those before memory calls end */
};

struct step_list {
    enum step_rule rule;
    struct step *steps;
    size_t count;
};

/* Finds the steps of all of READER. Returns 0 with *LIST to be given to
 * step_list_fini, or -1 with ERR set and nothing to free. */
int step_list_read(struct step_list *list, struct trace_reader *reader,
                   struct err *err);
void step_list_fini(struct step_list *list);
struct step_list step_list_copy(const struct step_list *list);

/* The same, record by record. */
struct step_finder;
struct step_finder *step_finder_create(void);
void step_finder_take(struct step_finder *f, const struct trace_item *item);
/* Sets *LIST and frees F. */
void step_finder_conclude(struct step_finder *f, struct step_list *list);

#endif
