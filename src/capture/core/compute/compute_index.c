/* SPDX-License-Identifier: Apache-2.0
 * Kernels that move elements to or from places that a tensor names:
 * aten/src/ATen/native/cuda/IndexKernel.cu, ScatterGatherKernel.cu,
 * Indexing.cu, IndexKernelUtils.cu. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_few.h"
#include "capture/core/compute/compute_bounds.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/memory/values.h"

enum form {
    FORM_GET,  /* out = in[index] */
    FORM_PUT,  /* out[index] = in */
    FORM_FILL, /* out[index] = the closure's value */
    FORM_COPY, /* index_copy */
    FORM_GATHER,
    FORM_SCATTER,
    FORM_SCATTER_ADD,
    FORM_SCATTER_FILL,
};

/* The first place after an OffsetCalculator of ARGS. */
#define AFTER_OFFSETS(args) ((OFFSETS_BYTES(args) + 7u) & ~7u)

static uint64_t word_at(const char *p, uint32_t at)
{
    uint64_t word;

    memcpy(&word, p + at, sizeof word);
    return word;
}

/* Those that the kernels here assert; negative ones count from the end, where
 * they are allowed. */
static struct compute_bounds bounds_of(const char *what, enum number_type type,
                                       int64_t size, bool wraps)
{
    return (struct compute_bounds){.what = what,
                                   .of = "places",
                                   .type = type,
                                   .low = wraps ? -size : 0,
                                   .size = size,
                                   .ignore = size - 1};
}

/* An index that may count from the end; false where it is out of range. */
static bool index_load(const struct compute_bounds *b,
                       const struct kernel_launch *launch, uint64_t address,
                       int64_t *index, bool *known)
{
    long double x;

    *known &= compute_load(b->type, address, &x);
    *index = (int64_t)x;
    if (*index < b->low || *index >= b->size) {
        compute_bounds_check(b, launch, address, 1);
        return false;
    }
    if (*index < 0)
        *index += b->size;
    return *index >= 0;
}

/* An index, number I of those that C writes to, is not known: a policy says
 * which PLACE of SIZE it is, where what is at TO or comes FROM there is known.
 * False where that does not matter. */
static bool place_decide(const struct compute *c,
                         const struct kernel_launch *launch, int64_t size,
                         uint64_t i, const uint64_t addresses[2],
                         int64_t *place)
{
    if (!values_known(addresses[0], c->bytes) &&
        !(addresses[1] && values_known(addresses[1], c->bytes)))
        return false;
    *place = (int64_t)compute_place_guess(c, launch, (uint64_t)size, i);
    return true;
}

/* vectorized_gather_kernel (char *out, const char *in, const index_t *index,
 * int count, int64_t slice, rows, in stride, out stride, ...): all in bytes. */
static void run_gather_rows(const struct compute *c,
                            const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 1);
    uint64_t index = compute_u64(launch, 2), count = compute_u32(launch, 3);
    uint64_t slice = compute_u64(launch, 4);
    int64_t rows = (int64_t)compute_u64(launch, 5), row;
    uint64_t in_stride = compute_u64(launch, 6);
    uint64_t out_stride = compute_u64(launch, 7);
    uint32_t bytes = number_bytes(c->types[0]);

    if (!values_window(out) || !values_window(in) || !values_window(index))
        return;
    const struct compute_bounds bounds =
        bounds_of("an index of embedding or index_select", c->types[0], rows,
                  *(const bool *)launch->arguments[8]);
    compute_bounds_check(&bounds, launch, index, count);
    memsim_values_forget(out, (count - 1) * out_stride + slice);
    if (count * slice > VALUES_COPY_BYTES)
        return;
    for (uint64_t i = 0; i < count; i++) {
        bool known = true;

        if (index_load(&bounds, launch, index + i * bytes, &row, &known) &&
            known)
            compute_move(out + i * out_stride, in + (uint64_t)row * in_stride,
                         (uint32_t)slice);
    }
}

bool compute_gather_rows_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "24vectorized_gather_kernelILi16E");

    c->run = run_gather_rows;
    return text && name_types(&text, c->types, 1);
}

/* gpu_index_kernel's closure: OffsetCalculator<3>, char *out, *in, size_t
 * count, char *indices[25], int64_t sizes[25], strides[25], ... */
static bool index_offset(const struct compute *c,
                         const struct kernel_launch *launch, uint64_t i,
                         const uint64_t offsets[3], int64_t *offset,
                         bool *known)
{
    const char *closure = launch->arguments[1];
    const uint64_t places[] = {word_at(closure, AFTER_OFFSETS(3)) + offsets[0],
                               word_at(closure, AFTER_OFFSETS(3) + 8) +
                                   offsets[1]};
    const char *words = closure + AFTER_OFFSETS(3) + 16;
    uint64_t count = word_at(words, 0) & UINT32_MAX;
    int64_t index;

    *offset = 0;
    for (uint32_t k = 0; k < count; k++) {
        int64_t size = (int64_t)word_at(words, 8 + 200 + 8 * k);
        int64_t stride = (int64_t)word_at(words, 8 + 400 + 8 * k);
        bool own = true;
        const struct compute_bounds bounds =
            bounds_of("an index of a tensor", NUMBER_I64, size, true);

        if (!index_load(&bounds, launch, word_at(words, 8 + 8 * k) + offsets[2],
                        &index, &own))
            return false;
        if (!own && c->form == FORM_PUT)
            own = place_decide(c, launch, size, i, places, &index);
        *known &= own;
        *offset += index * stride;
    }
    return true;
}

static void run_index(const struct compute *c,
                      const struct kernel_launch *launch)
{
    const char *closure = launch->arguments[1];
    uint64_t count = compute_u64(launch, 0), offsets[3];
    uint64_t out = word_at(closure, AFTER_OFFSETS(3));
    uint64_t in = word_at(closure, AFTER_OFFSETS(3) + 8);
    int64_t offset;

    if (!compute_offsets_valid(closure) || !values_window(out) ||
        !values_window(in) ||
        word_at(closure, AFTER_OFFSETS(3) + 16) > OFFSETS_DIMS)
        return;
    if (count * c->bytes > VALUES_COPY_BYTES) {
        memsim_values_forget(out, c->form == FORM_GET ? count * c->bytes : 0);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        bool known = true;

        compute_offsets(closure, 3, i, offsets);
        if (!index_offset(c, launch, i, offsets, &offset, &known))
            continue;
        uint64_t to = out + offsets[0], from = in + offsets[1];
        if (c->form == FORM_GET)
            from += (uint64_t)offset;
        else
            to += (uint64_t)offset;
        compute_move(to, from, c->bytes);
        if (!known)
            values_write(to, c->bytes, false);
    }
}

/* Two kernels whose closures are OffsetCalculator, char *self, *index, ... */
static void run_index_dim(const struct compute *c,
                          const struct kernel_launch *launch)
{
    const char *closure = launch->arguments[1];
    uint32_t args = c->form == FORM_FILL ? 2 : 3, at = AFTER_OFFSETS(args);
    uint64_t count = compute_u64(launch, 0), offsets[3];
    uint64_t self = word_at(closure, at), index = word_at(closure, at + 8);
    uint64_t source = c->form == FORM_COPY ? word_at(closure, at + 16) : 0;
    uint32_t sizes = at + (c->form == FORM_COPY ? 24 : 16);
    int64_t size = (int64_t)word_at(closure, sizes), place;
    uint64_t stride = word_at(closure, sizes + 8);
    const struct compute_bounds bounds =
        bounds_of("an index of index_fill or index_copy", NUMBER_I64, size,
                  c->form == FORM_FILL);

    if (!compute_offsets_valid(closure) || !values_window(self) ||
        count * c->bytes > VALUES_COPY_BYTES)
        return;
    for (uint64_t i = 0; i < count; i++) {
        bool known = true;

        compute_offsets(closure, (int)args, i, offsets);
        if (!index_load(&bounds, launch, index + offsets[1], &place, &known))
            continue;
        const uint64_t places[] = {
            self + offsets[0], c->form == FORM_COPY ? source + offsets[2] : 0};
        known = known || place_decide(c, launch, size, i, places, &place);
        uint64_t to = places[0] + (uint64_t)place * stride * c->bytes;
        if (c->form == FORM_COPY)
            compute_move(to, source + offsets[2], c->bytes);
        else
            values_fill_as(to, closure + sizes + 16, c->bytes, 1,
                           compute_mark());
        if (!known)
            values_write(to, c->bytes, false);
    }
}

/* Of the closures that index_offset() and run_index_dim() describe. */
static uint32_t index_reach(const struct compute *c,
                            const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    switch ((enum form)c->form) {
    case FORM_FILL:
        return AFTER_OFFSETS(2) + 32 + c->bytes;
    case FORM_COPY:
        return AFTER_OFFSETS(3) + 40;
    default:
        return AFTER_OFFSETS(3) + 24 + 3 * 200;
    }
}

bool compute_index_parse(const char *name, struct compute *c)
{
    static const struct kernel {
        const char *pattern;
        enum form form;
        void (*run)(const struct compute *, const struct kernel_launch *);
    } kernels[] = {
        {"17index_kernel_implI", FORM_GET, run_index},
        {"21index_put_kernel_implI", FORM_PUT, run_index},
        {"22index_fill_kernel_implI", FORM_FILL, run_index_dim},
        {"22index_copy_kernel_implI", FORM_COPY, run_index_dim},
    };

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const char *text = name_after(name, kernels[i].pattern);

        if (!text)
            continue;
        c->form = kernels[i].form;
        c->run = kernels[i].run;
        c->reach = index_reach;
        c->bytes = name_bytes(text);
        return c->bytes;
    }
    return false;
}

/* _cuda_scatter_gather_internal_kernel's closure: OffsetCalculator<3>, char
 * *index, int64_t index_size, functor, char *self, int64_t index_stride,
 * numel, char *source; ..._fill_...'s has OffsetCalculator<2> and the value in
 * the source's place. */
struct scatter {
    const char *closure;
    int args;
    uint64_t index, self, source;
    uint64_t stride; /* in elements */
    struct compute_bounds bounds;
};

static void scatter_read(const struct compute *c, const char *closure,
                         struct scatter *s)
{
    s->closure = closure;
    s->args = c->form == FORM_SCATTER_FILL ? 2 : 3;
    uint32_t at = AFTER_OFFSETS((uint32_t)s->args);
    s->index = word_at(closure, at);
    s->bounds = bounds_of("an index of gather or scatter", c->types[1],
                          (int64_t)word_at(closure, at + 8), false);
    s->self = word_at(closure, at + 24);
    s->stride = word_at(closure, at + 32);
    s->source = word_at(closure, at + 48);
}

static void scatter_element(const struct compute *c, const struct scatter *s,
                            const struct kernel_launch *launch, uint64_t i)
{
    uint64_t offsets[3];
    int64_t place;
    long double a, b;
    bool known = true;

    compute_offsets(s->closure, s->args, i, offsets);
    if (!index_load(&s->bounds, launch, s->index + offsets[s->args - 1], &place,
                    &known))
        return;
    uint64_t from = c->form == FORM_SCATTER_FILL ? 0 : s->source + offsets[1];
    const uint64_t places[] = {s->self + offsets[0], from};
    if (!known) {
        known = place_decide(c, launch, s->bounds.size, i, places, &place);
        if (known && s->stride == 1) /* the others may be it */
            values_mark_assumed(places[0], (uint64_t)s->bounds.size * c->bytes);
    }
    uint64_t to = places[0] + (uint64_t)place * s->stride * c->bytes;
    if (c->form == FORM_SCATTER) {
        compute_move(to, from, c->bytes);
    } else if (c->form == FORM_SCATTER_FILL) {
        values_fill_as(to, &s->source, c->bytes, 1, compute_mark());
    } else {
        known &= compute_load(c->types[0], to, &a);
        known &= compute_load(c->types[0], from, &b);
        compute_store(c->types[0], to, c->operation(a, b, 0), known);
        return;
    }
    if (!known)
        values_write(to, c->bytes, false);
}

static void gather_element(const struct compute *c, const struct scatter *s,
                           const struct kernel_launch *launch, uint64_t i)
{
    uint64_t offsets[3];
    bool known = true;
    int64_t place;

    compute_offsets(s->closure, s->args, i, offsets);
    if (!index_load(&s->bounds, launch, s->index + offsets[2], &place, &known))
        return;
    uint64_t to = s->self + offsets[0];
    compute_move(to,
                 s->source + offsets[1] +
                     (uint64_t)place * s->stride * c->bytes,
                 c->bytes);
    if (!known)
        values_write(to, c->bytes, false);
}

/* Whether a scatter's COUNT numbers are ones: of whatever type, where only its
 * size is known. */
static bool are_ones(const struct compute *c, const struct scatter *s,
                     uint64_t count)
{
    uint64_t value = s->source;
    struct few few;

    if (c->bytes < 8)
        value &= (UINT64_C(1) << 8 * c->bytes) - 1;
    switch (c->form) {
    case FORM_SCATTER_FILL:
        return value == 1 || value == 0x3c00 || value == 0x3f80 ||
               value == 0x3f800000 || value == UINT64_C(0x3ff0000000000000);
    case FORM_SCATTER_ADD:
        return c->operation == operation_add &&
               few_get(c->types[0], s->source, count, &few) && few.ones;
    default:
        return false;
    }
}

/* Too many elements to look at: what they change is not known. */
static void scatter_forget(const struct compute *c, const struct scatter *s,
                           uint64_t count)
{
    uint64_t offsets[3], bytes;

    compute_offsets(s->closure, s->args, count - 1, offsets);
    bytes = offsets[0] + c->bytes;
    if (c->form != FORM_GATHER)
        bytes += (uint64_t)(s->bounds.size - 1) * s->stride * c->bytes;
    memsim_values_forget(s->self, bytes);
}

static void run_scatter(const struct compute *c,
                        const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0);
    struct scatter s;

    scatter_read(c, launch->arguments[1], &s);
    if (!compute_offsets_valid(s.closure) || !values_window(s.self) ||
        !values_window(s.index))
        return;
    const struct values_few before = *values_few_at(s.self);
    if (count > COMPUTE_INTEGERS && s.bounds.size > 0)
        scatter_forget(c, &s, count);
    for (uint64_t i = 0; count <= COMPUTE_INTEGERS && i < count; i++)
        if (c->form == FORM_GATHER)
            gather_element(c, &s, launch, i);
        else
            scatter_element(c, &s, launch, i);
    if (c->form != FORM_GATHER && before.address == s.self)
        few_scattered(&before, count, are_ones(c, &s, count));
}

static uint32_t scatter_reach(const struct compute *c,
                              const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return AFTER_OFFSETS(c->form == FORM_SCATTER_FILL ? 2u : 3u) + 56;
}

bool compute_scatter_parse(const char *name, struct compute *c)
{
    const char *fill =
        name_after(name, "34_cuda_scatter_fill_internal_kernelI");
    const char *move =
        name_after(name, "36_cuda_scatter_gather_internal_kernelILb");
    const char *text = fill ? fill : move ? move + 2 : NULL;

    c->run = run_scatter;
    c->reach = scatter_reach;
    if (!text)
        return false;
    c->bytes = name_bytes(text);
    /* <scalar_t, index_t> from 2.9 on; before, int64_t indices only. */
    c->types[1] = strstr(name, "EEEiEclI") ? NUMBER_I32 : NUMBER_I64;
    if (strstr(name, "12TensorAssign")) {
        c->form = fill           ? FORM_SCATTER_FILL
                  : *move == '0' ? FORM_GATHER
                                 : FORM_SCATTER;
        return c->bytes;
    }
    c->form = FORM_SCATTER_ADD;
    if (fill || !name_types(&text, c->types, 1))
        return false;
    c->operation = operation_of_type(operation_reducer(name), c->types[0]);
    return c->operation;
}

/* indexSelect{Small,Large}Index (TensorInfo out, in, index, int out dimension,
 * in dimension, [total,] inner size, int64_t in size): the dimension selected
 * has size 1 in both. */
static void run_index_select(const struct compute *c,
                             const struct kernel_launch *launch)
{
    struct compute_tensor out, in, index;
    uint32_t to = compute_u32(launch, 3), from = compute_u32(launch, 4);
    int64_t size = (int64_t)compute_u64(launch, 6 + (uint32_t)c->layout), row;

    if (!compute_tensor_read(launch->arguments[0], &out) ||
        !compute_tensor_read(launch->arguments[1], &in) ||
        !compute_tensor_read(launch->arguments[2], &index) ||
        to >= OFFSETS_DIMS || from >= OFFSETS_DIMS)
        return;
    uint64_t count = index.dims ? index.sizes[0] : 1;
    uint64_t inner = compute_slice(c, launch, count);
    struct compute_bounds bounds = bounds_of(
        "an index of embedding or index_select", c->types[1], size, true);
    bounds.low = INT64_MIN; /* only too large ones are asserted not to be */
    if (!index.dims || index.strides[0] == 1)
        compute_bounds_check(&bounds, launch, index.data, count);
    if (count * inner * c->bytes > VALUES_COPY_BYTES)
        return;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = index.data + compute_tensor_offset(&index, i) *
                                       number_bytes(c->types[1]);
        bool known = true;

        if (!index_load(&bounds, launch, at, &row, &known) || !known)
            continue;
        for (uint64_t k = 0; k < inner; k++)
            compute_move(out.data + (compute_tensor_offset(&out, k) +
                                     i * out.strides[to]) *
                                        c->bytes,
                         in.data + (compute_tensor_offset(&in, k) +
                                    (uint64_t)row * in.strides[from]) *
                                       c->bytes,
                         c->bytes);
    }
}

bool compute_index_select_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "21indexSelectSmallIndexI");

    c->run = run_index_select;
    if (!text) {
        text = name_after(name, "21indexSelectLargeIndexI");
        c->layout = 1;
    }
    if (!text || !name_types(&text, c->types, 2) || *text != 'j')
        return false;
    c->bytes = number_bytes(c->types[0]);
    return true;
}

/* take and put: cuda_take_put_kernel's closure: OffsetCalculator<2>, char
 * *elements, *index, int64_t count of the indexed tensor, bool contiguous,
 * OffsetCalculator<1>, functor{T *indexed}; the one that accumulates holds the
 * count, too. */
enum { TAKE_READS, TAKE_PUTS, TAKE_ADDS };

#define TAKE_WORDS   AFTER_OFFSETS(2)
#define TAKE_OFFSETS (TAKE_WORDS + 28)
#define TAKE_INDEXED ((TAKE_OFFSETS + OFFSETS_BYTES(1) + 7) & ~7u)

static uint64_t take_indexed(const char *closure)
{
    uint64_t first = word_at(closure, TAKE_INDEXED);

    return values_window(first) ? first : word_at(closure, TAKE_INDEXED + 8);
}

static void take_element(const struct compute *c, const char *closure,
                         const struct kernel_launch *launch, uint64_t i)
{
    uint64_t offsets[2], inner = 0;
    int64_t size = (int64_t)word_at(closure, TAKE_WORDS + 16), place;
    const struct compute_bounds bounds =
        bounds_of("an index of take or put", NUMBER_I64, size, true);
    uint32_t bytes = number_bytes(c->types[0]);
    bool known = true;
    long double a, b;

    compute_offsets(closure, 2, i, offsets);
    uint64_t element = word_at(closure, TAKE_WORDS) + offsets[0];
    if (!index_load(&bounds, launch,
                    word_at(closure, TAKE_WORDS + 8) + offsets[1], &place,
                    &known))
        return;
    inner = (uint64_t)place;
    if (!(closure[TAKE_WORDS + 24] & 1))
        compute_offsets(closure + TAKE_OFFSETS, 1, (uint64_t)place, &inner);
    uint64_t indexed = take_indexed(closure) + inner * bytes;
    uint64_t to = c->form == TAKE_READS ? element : indexed;
    if (c->form == TAKE_ADDS) {
        known &= compute_load(c->types[0], indexed, &a);
        known &= compute_load(c->types[0], element, &b);
        compute_store(c->types[0], indexed, a + b, known);
        return;
    }
    compute_move(to, c->form == TAKE_READS ? indexed : element, bytes);
    if (!known)
        values_write(to, bytes, false);
}

static void run_take(const struct compute *c,
                     const struct kernel_launch *launch)
{
    const char *closure = launch->arguments[1];
    uint64_t count = compute_u64(launch, 0);

    if (!compute_offsets_valid(closure) ||
        !values_window(word_at(closure, TAKE_WORDS)) ||
        !values_window(take_indexed(closure)) ||
        (!(closure[TAKE_WORDS + 24] & 1) &&
         !compute_offsets_valid(closure + TAKE_OFFSETS)) ||
        count > COMPUTE_INTEGERS)
        return;
    for (uint64_t i = 0; i < count; i++)
        take_element(c, closure, launch, i);
}

static uint32_t take_reach(const struct compute *c,
                           const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return TAKE_INDEXED + (c->form == TAKE_ADDS ? 16 : 8);
}

bool compute_take_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "20cuda_take_put_kernelI");

    c->run = run_take;
    c->reach = take_reach;
    c->form = strstr(name, "11take_kernelE") ? TAKE_READS
              : strstr(name, "iE0_EEv")      ? TAKE_PUTS
                                             : TAKE_ADDS;
    return text && name_types(&text, c->types, 1) && *text == 'i';
}
