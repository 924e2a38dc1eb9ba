/* SPDX-License-Identifier: Apache-2.0
 * A launch of an elementwise kernel. compute_loop.c runs it;
 * compute_loop_name.c finds its functor by name, compute_loop_functor.c reads
 * and evaluates it; compute_loop_unknown.c has the policy for inputs that are
 * not known. */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_LOOP_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_LOOP_H

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_few.h"

/* How the functor makes an output of its inputs x and what it holds, s. */
enum form {
    FORM_UNARY,     /* op(x0) */
    FORM_BINARY,    /* op(x0, x1) */
    FORM_A,         /* op(s0, x0): AUnaryFunctor */
    FORM_B,         /* op(x0, s0): BUnaryFunctor */
    FORM_HELD_A,    /* op(s0, x0), of a lambda that holds nothing else */
    FORM_HELD_B,    /* op(x0, s0), likewise */
    FORM_ADD,       /* x0 + s0 * x1: CUDAFunctor_add{alpha} */
    FORM_ADD_SELF,  /* x0 + s1 * s0: CUDAFunctorOnSelf_add{other, alpha} */
    FORM_ADD_OTHER, /* s0 + s1 * x0: CUDAFunctorOnOther_add{self, alpha} */
    FORM_ADD_OF,    /* x0 + s0 * op(x1, x2): addcmul, addcdiv */
    FORM_WHERE,     /* x0 ? x1 : x2 */
    FORM_MASK,      /* x1 ? s0 : x0: masked_fill */
    FORM_CLAMP,     /* between s0 and s1, as its ClampLimits says */
    FORM_BETWEEN,   /* x0, between x1 and x2 */
    FORM_FILL,      /* s0 */
    FORM_TAKE,      /* x1 ? s0[x2] : x0: masked_scatter */
    FORM_OTHER,     /* not carried out */
};

/* What nvcc makes of the functor. A lambda of the host, too, that captures
 * anything, or could ([=]), has a pointer behind what it holds. */
enum holder {
    HOLDER_PLAIN,
    HOLDER_POINTER,
};

#define INPUTS 3

struct loop {
    const struct compute *compute;
    uint64_t count;
    int inputs;
    const char *offsets; /* the OffsetCalculator; NULL where dense */
    uint64_t data[INPUTS + 1];
    enum number_type types[INPUTS + 1];
    long double s[2];
    int variant; /* the enum that the functor starts with */
};

/* Carries L out, or says that nothing is known of its output. */
void loop_run(const struct loop *l, const struct kernel_launch *launch);

/* Finds the functor in a kernel's NAME: C's form, operation and types. */
bool loop_functor_parse(const char *name, struct compute *c);

/* Reads what the FUNCTOR of a launch holds. */
void loop_functor_read(struct loop *l, const char *functor);

/* The size of the functor. */
uint32_t loop_functor_bytes(const struct compute *c);

/* Carries L out where each input is the same number all over, of any size;
 * false where it is not, or its output is not in one piece. */
bool loop_constant(const struct loop *l);

/* Whether what is KNOWN of the inputs X decides alone. */
bool loop_is_decided(const struct loop *l, const long double *x,
                     const bool *known);

/* Whether the output is certain although its inputs are not known. */
bool loop_is_certain(const struct loop *l);

/* Computes the element INDEX and stores it. */
void loop_element(const struct loop *l, uint64_t index, bool certain);

/* What the functor takes the number X of input I for. */
long double loop_input(const struct loop *l, int i, long double x);

/* The output of inputs X. */
long double loop_evaluate(const struct loop *l, const long double *x);

/* Where the last element of a TENSOR (0: the output) lies, in bytes. */
uint64_t loop_last_offset(const struct loop *l, int tensor);

/* How many elements of L's output are not zero, at most or about, where that
 * follows from its inputs; false where it does not. */
bool few_of_loop(const struct loop *l, struct few *few);

/* The same of a comparison, by what is compared: about. */
bool few_of_comparison(const struct loop *l, struct few *few);

/* Whether that is noted of an input, and not only to be counted. */
bool few_is_noted(const struct loop *l);

#endif
