/* SPDX-License-Identifier: Apache-2.0
 * The definition of a training step, for everything that counts steps. Steps
 * are numbered from 0.
 *
 * With optimizer steps, step k + 1 begins with the first forward after step
 * k's optimizer. So several backwards before one optimizer step (gradient
 * accumulation) are one step. The last step ends with its optimizer. Captured
 * work is no step; each launch of its graph runs the captured forward and
 * optimizer.
 * Without optimizers each outermost module call is a step, or as many as the
 * program repeats (step_repeat.h). Without modules the ranges that a profiler
 * or NVTX marks as steps are the steps.
 *
 * Where `--step-mark' names the function that is a step, its calls are, and
 * nothing else: a step begins with a call and ends where the next one begins,
 * the last one where its call ends. */
#ifndef MEMSIM_COMMON_TRACE_STEP_H
#define MEMSIM_COMMON_TRACE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trace/step_phases.h"

/* The beginning of the text of the range that a call of --step-mark's function
 * is in; the function's name follows. Its domain is that of no other range. */
#define STEP_MARK_TEXT "memsim step "

/* Only the rule of optimizer steps, record by record. Zeroed: at the start. */
struct step_counter {
    unsigned step; /* the current one */
    bool begun;    /* a forward was seen */
    bool stepped;  /* the optimizer has stepped in this step */
};

/* Takes the phase of a PHASE record. Returns true if a step begins: at the
 * first forward, and at each first forward after an optimizer's step. */
bool step_counter_phase(struct step_counter *c, uint64_t phase);

/* The number of complete steps: their optimizer has stepped. */
unsigned step_counter_whole(const struct step_counter *c);

/* The marks of --step-mark, record by record. Zeroed: at the start. */
struct step_marks {
    unsigned begun;  /* so many */
    uint64_t domain; /* of their ranges */
    bool open;       /* the last one's call has not ended */
};

enum step_mark_event { STEP_MARK_NONE, STEP_MARK_BEGINS, STEP_MARK_ENDS };

/* Takes the next record, of any kind. */
enum step_mark_event step_marks_take(struct step_marks *m,
                                     const struct trace_item *item);

/* Both rules, with the phases that are carried out. Zeroed: at the start of a
 * trace. */
struct step_tracker {
    struct step_counter counter;
    struct step_phases phases;
    struct step_marks marks;
    unsigned unmarked; /* steps that began before the first mark */
};

/* Takes the next record of a trace, of any kind. */
void step_tracker_take(struct step_tracker *t, const struct trace_item *item);
/* The step that runs now, from 0. What is captured belongs to the step of its
 * first launch, which is taken to be the next one. */
unsigned step_tracker_step(const struct step_tracker *t);
/* Whether a step has begun. */
bool step_tracker_begun(const struct step_tracker *t);
/* The number of complete steps. */
unsigned step_tracker_whole(const struct step_tracker *t);
void step_tracker_fini(struct step_tracker *t);

#define STEP_THREADS 4096 /* whose module calls are counted */

/* The outermost module calls, by thread. Zeroed: at the start. */
struct step_calls {
    uint32_t depth[STEP_THREADS];
};

/* Takes the next record, of any kind. Returns true if an outermost call
 * begins. */
bool step_calls_take(struct step_calls *c, const struct trace_item *item);

enum step_rule {
    STEP_NONE,
    STEP_OPTIMIZER,
    STEP_MODULE,
    STEP_REPEAT,
    STEP_RANGE,
    STEP_MARK
};

/* "optimizer steps", for reports. */
const char *step_rule_name(enum step_rule rule);

/* Whether KIND is work or a wait for work, which belongs to a step. The last
 * step ends after the last record of these kinds. */
bool step_is_work(unsigned kind);

/* Records are counted from 0 in the reader's order. A step's records are
 * [first, end). */
struct step {
    uint64_t first, end;
    uint64_t first_ns, end_ns; /* of the trace's clock */
    bool warm_up; /* the first step, and those before memory calls end */
    uint32_t calls; /* of modules, by STEP_REPEAT */
    struct step_input input;
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
