/* SPDX-License-Identifier: Apache-2.0
 * Kernels over lists of tensors:
 * aten/src/ATen/native/cuda/MultiTensorApply.cuh, with the functors of
 * ForeachFunctors.cuh, ForeachUnaryOp.cu and of the fused optimizers. What they
 * write is known from their names; small tensors, such as counters of steps,
 * are computed, others forgotten. */
#include <stdlib.h>
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/work/foreach.h"
#include "capture/core/memory/values.h"
#include "common/base/text_begins.h"

/* What is done to element x of the first list: s is a scalar. */
enum form {
    FORM_OTHER,  /* not carried out */
    FORM_SCALAR, /* op(x, s): (lists, functor, op, s) */
    FORM_LISTS,  /* op(x, s * y), y of the second list: the same */
    FORM_TENSOR, /* op(x, s * *p): (lists, functor, op, p, s) */
    FORM_EACH,   /* op(x, s), an s for each tensor: (lists, functor, op) */
    FORM_ZERO,
    FORM_COPY, /* of the same type */
};

#define RESULT_ALL  -1 /* every list */
#define RESULT_NONE -2 /* none of them */
#define SCALAR      1 /* the place in TYPES of TensorListScalarListMetadata's */

static bool lists_read(const struct compute *c,
                       const struct kernel_launch *launch,
                       struct foreach_lists *l)
{
    const struct foreach_kind kind = {
        .depth = (uint32_t)c->layout,
        .scalar_bytes = number_bytes(c->types[SCALAR]),
        .has_steps = c->is_cast,
    };

    return foreach_read(&kind, launch, l);
}

/* (chunk size and metadata of all lists, -, -, scalar or tensor, scalar) */
static uint32_t foreach_reach(const struct compute *c,
                              const struct kernel_launch *launch, int i)
{
    struct foreach_lists l;

    if (i)
        return number_bytes(c->scalar);
    return lists_read(c, launch, &l) ? l.bytes : 0;
}

/* What the metadata's name in the kernel's says, into C->layout, the number of
 * lists, C->is_cast where it has steps too, and the type of its scalars. */
static bool metadata_parse(const char *name, struct compute *c)
{
    const char *each = name_after(name, "28TensorListScalarListMetadataI");
    const char *fused =
        name_after(name, "32FusedOptimizerTensorListMetadataILi");
    const char *depth = name_after(name, "18TensorListMetadataILi");

    c->is_cast = fused;
    c->types[SCALAR] = NUMBER_NONE;
    if (fused)
        depth = fused;
    if (each && name_types(&each, &c->types[SCALAR], 1))
        depth = name_after(each, "Li");
    if (!depth || !text_begins(depth + 1, "EE") ||
        !text_begins(name, "_ZN2at6native"))
        return false;
    c->layout = depth[0] - '0';
    c->reach = foreach_reach;
    return c->layout >= 1 && c->layout <= FOREACH_DEPTH_MAX;
}

/* <number of lists, of arguments, the result's list>, as most functors have. */
static int result_parse(const char *text)
{
    int last = RESULT_ALL, count = 0;

    for (; text_begins(text, "Li"); count++) {
        char *end;

        last = (int)strtol(text + 2, &end, 10);
        if (*end != 'E')
            return RESULT_ALL;
        text = end + 1;
    }
    return count == 3 ? last : RESULT_ALL;
}

static bool functor_parse(const char *name, const char *functor,
                          struct compute *c)
{
    const char *text = name_after(name, functor);

    if (!text || !metadata_parse(name, c) || !name_types(&text, c->types, 1))
        return false;
    c->scalar = number_opmath(c->types[0]);
    c->count = result_parse(text);
    return true;
}

static uint64_t address_of(const struct foreach_lists *l, int list,
                           uint32_t tensor)
{
    return l->addresses[(uint32_t)list * l->room + tensor];
}

static void tensor_forget(const struct compute *c,
                          const struct foreach_lists *l, int list,
                          uint32_t tensor)
{
    compute_forget(c->types[0], address_of(l, list, tensor),
                   (uint64_t)l->numel[tensor] * number_bytes(c->types[0]));
}

static void run_forget(const struct compute *c,
                       const struct kernel_launch *launch)
{
    int from = c->count == RESULT_ALL ? 0 : c->count;
    int to = c->count == RESULT_ALL ? c->layout - 1 : c->count;
    struct foreach_lists l;

    if (c->count == RESULT_NONE || !lists_read(c, launch, &l))
        return;
    for (int list = from; list <= to; list++)
        for (uint32_t t = 0; t < l.tensors; t++)
            tensor_forget(c, &l, list, t);
}

/* The scalar of tensor T, or what it is a factor of; whether that is known. */
static bool scalar_read(const struct compute *c,
                        const struct kernel_launch *launch,
                        const struct foreach_lists *l, uint32_t t,
                        long double *s)
{
    long double factor;

    if (c->form != FORM_TENSOR) {
        *s = c->form == FORM_EACH
                 ? number_load(c->types[SCALAR],
                               l->scalars + t * number_bytes(c->types[SCALAR]))
                 : number_load(c->scalar, launch->arguments[3]);
        return true;
    }
    bool known = compute_load(c->types[0], compute_u64(launch, 3), &factor);
    *s = factor * number_load(c->scalar, launch->arguments[4]);
    return known;
}

/* A float that comes of an unknown one is forgotten: most do. */
static void compute_element(const struct compute *c,
                            const struct foreach_lists *l, uint32_t t,
                            uint64_t at, long double s, bool known)
{
    uint32_t bytes = number_bytes(c->types[0]);
    uint64_t to = address_of(l, c->count, t) + at * bytes;
    long double x, y = 1;

    known &= compute_load(c->types[0], address_of(l, 0, t) + at * bytes, &x);
    if (c->form == FORM_LISTS)
        known &=
            compute_load(c->types[0], address_of(l, 1, t) + at * bytes, &y);
    if (known || !number_is_float(c->types[0]))
        compute_store(
            c->types[0], to,
            c->operation(x, number_product(c->types[0], s, y), 0), known);
    else
        memsim_values_forget(to, bytes);
}

static void run_operation(const struct compute *c,
                          const struct kernel_launch *launch)
{
    struct foreach_lists l;
    long double s;

    if (!lists_read(c, launch, &l))
        return;
    for (uint32_t t = 0; t < l.tensors; t++) {
        uint64_t count = (uint64_t)l.numel[t];

        if (count > COMPUTE_FLOATS) {
            tensor_forget(c, &l, c->count, t);
            continue;
        }
        bool known = scalar_read(c, launch, &l, t, &s);
        for (uint64_t i = 0; i < count; i++)
            compute_element(c, &l, t, i, s, known);
    }
}

static bool operation_parse(const char *name, struct compute *c, enum form form,
                            const char *functor)
{
    if (!functor_parse(name, functor, c) || c->count < 0 ||
        c->count >= c->layout || (form == FORM_LISTS && c->layout < 2))
        return false;
    c->form = form;
    c->operation =
        operation_of_type(operation_find(strstr(name, functor)), c->types[0]);
    c->run = run_operation;
    return c->operation;
}

static void run_whole(const struct compute *c,
                      const struct kernel_launch *launch)
{
    const uint64_t zero = 0;
    struct foreach_lists l;

    if (!lists_read(c, launch, &l))
        return;
    for (uint32_t t = 0; t < l.tensors; t++) {
        uint64_t bytes = (uint64_t)l.numel[t] * number_bytes(c->types[0]);
        uint64_t to = address_of(&l, c->count, t);

        if (c->form == FORM_ZERO && l.numel[t] <= (int64_t)COMPUTE_FLOATS)
            memsim_values_fill(to, &zero, 1, bytes);
        else if (c->form == FORM_COPY && bytes <= VALUES_WRITE_BYTES)
            memsim_values_copy(to, address_of(&l, 0, t), bytes);
        else
            memsim_values_forget(to, bytes);
    }
}

bool compute_foreach_scalar_parse(const char *name, struct compute *c)
{
    return operation_parse(name, c, FORM_SCALAR, "21BinaryOpScalarFunctorI") ||
           operation_parse(name, c, FORM_LISTS, "24BinaryOpListAlphaFunctorI");
}

bool compute_foreach_tensor_parse(const char *name, struct compute *c)
{
    return operation_parse(name, c, FORM_TENSOR,
                           "27BinaryOpScalarTensorFunctorI");
}

/* <dst_t, src_t, 2, 1, 1>; a type that cannot be read is another one. */
static bool copy_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "11CopyFunctorI");
    enum number_type types[2];

    if (!text || !metadata_parse(name, c) || c->layout != 2)
        return false;
    const char *first = text;
    bool is_same = name_types(&text, types, 2) && types[0] == types[1];
    if (!name_types(&first, c->types, 1))
        return false;
    c->count = 1;
    c->form = is_same ? FORM_COPY : FORM_OTHER;
    return true;
}

/* What only the functor's name tells, and its type and lists. */
static const struct named_functor {
    const char *pattern;
    bool writes_no_list; /* LpNorm and LpMax have a result of their own */
} functors[] = {
    {"14UnaryOpFunctorI", false},
    {"21BinaryOpScalarFunctorI", false},
    {"24BinaryOpListAlphaFunctorI", false},
    {"27BinaryOpScalarTensorFunctorI", false},
    {"24PointwiseOpScalarFunctorI", false},
    {"32PointwiseOpScalar0dTensorFunctorI", false},
    {"22PointwiseOpListFunctorI", false},
    {"28PointwiseOpScalarListFunctorI", false},
    {"25BinaryOpScalarListFunctorI", false},
    {"20TernaryOpListFunctorI", false},
    {"22TernaryOpScalarFunctorI", false},
    {"26TernaryOpScalarListFunctorI", false},
    {"20FusedAdamMathFunctorI", false},
    {"19FusedSgdMathFunctorI", false},
    {"23FusedAdagradMathFunctorI", false},
    {"13LpNormFunctorI", true},
    {"12LpMaxFunctorI", true},
};

bool compute_foreach_parse(const char *name, struct compute *c)
{
    if (operation_parse(name, c, FORM_EACH, "25BinaryOpScalarListFunctorI"))
        return true;
    c->run = run_whole;
    if (functor_parse(name, "11ZeroFunctorI", c) && c->count == 0) {
        c->form = FORM_ZERO;
        return true;
    }
    if (copy_parse(name, c)) {
        c->run = c->form == FORM_COPY ? run_whole : run_forget;
        return true;
    }
    c->run = run_forget;
    for (size_t i = 0; i < sizeof functors / sizeof *functors; i++)
        if (functor_parse(name, functors[i].pattern, c)) {
            if (functors[i].writes_no_list)
                c->count = RESULT_NONE;
            return c->count < c->layout;
        }
    return false;
}
