/* SPDX-License-Identifier: Apache-2.0
 * The rows of one class of work, and fitting the candidates to parts of them.
 */
#ifndef MEMSIM_OPFIT_FIT_CLASS_H
#define MEMSIM_OPFIT_FIT_CLASS_H

#include "opfit/fit_ops.h"
#include "opfit/line.h"

#define CLASS_GPUS 32

/* One class on the GPU that is fitted. OWN rows are its own, OTHER rows those
 * of other GPUs, which trees learn from where there are few of its own. */
struct fit_class {
    const struct ops *ops;
    const struct cost_gpu *limits;
    enum work_family family;
    uint32_t types, variants;
    uint32_t *own, *other;
    size_t own_count, other_count;
    bool alone;            /* trees learn from the own rows alone */
    bool launch_only;      /* all own times include a launch: see cap_floor() */
    uint32_t *source_rank; /* by source: 0 is the one that prices are for */
    struct cost_roofline *source_lines; /* by source: of its GPU */
    uint64_t seed;
};

struct fit_state {
    void *state;
    size_t bytes;
};

/* Whether KIND suits a class that has ROWS rows to learn from. */
bool fit_class_tries(const struct fit_class *c, enum cost_kind kind,
                     size_t rows);

/* Whether KIND learns from other GPUs' rows. */
bool fit_class_uses_others(const struct fit_class *c, enum cost_kind kind);

/* Fits KIND to PART of the own rows; the caller frees the state. */
struct fit_state fit_class_state(const struct fit_class *c, enum cost_kind kind,
                                 const struct ops_part *part);

/* What STATE says of row ROW, in ns. */
double fit_class_price(const struct fit_class *c, enum cost_kind kind,
                       const void *state, uint32_t row);

/* Takes what is left of launches off a state of KIND: where every time was
 * taken round a launch, the fitted floor is the launch's rather than the
 * kernel's, and prices get the family's usual floor instead. */
void fit_class_cap_floor(const struct fit_class *c, enum cost_kind kind,
                         void *state);

/* Ranks the sources and fits the other GPUs' rooflines. */
void fit_class_prepare(struct fit_class *c, const char *gpu);

void fit_class_fini(struct fit_class *c);

/* Holds out shape groups, then the largest; fills ERRORS, chooses a kind, its
 * band and whether it is fitted ALONE: other GPUs' rows serve where they make
 * the error less. */
enum cost_kind fit_class_validate(struct fit_class *c,
                                  struct fit_errors *errors, double *low,
                                  double *high);

#endif
