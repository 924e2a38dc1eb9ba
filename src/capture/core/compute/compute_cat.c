/* SPDX-License-Identifier: Apache-2.0
 * Concatenation: aten/src/ATen/native/cuda/Shape.cu. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"

#define CAT_DIMS 4

/* TensorSizeStride<uint32_t, 4>, in elements. */
struct shape {
    uint32_t sizes[CAT_DIMS], strides[CAT_DIMS];
};

/* Of CatArrInputTensorMetadata<T, uint32_t, n, n or 1>: const T *input[n];
 * uint32_t offset[n], size[n], count[n]; bool is_contiguous[n];
 * TensorSizeStride shape[n or 1]. */
struct piece {
    uint64_t input;
    uint32_t offset, size, count;
    bool is_contiguous;
    struct shape shape; /* where it is not contiguous */
};

/* What does not change from piece to piece. The vectorized kernel moves SCALE
 * elements as one, UNIT bytes. */
struct cat {
    uint64_t out;
    struct shape shape;
    int dims, dim;
    uint32_t stride; /* of DIM, or the product of the sizes that follow */
    uint32_t scale, unit;
};

/* Where the pieces' shapes begin. */
static uint32_t shapes_place(uint32_t n)
{
    return (21 * n + 3) & ~3u;
}

static struct piece piece_read(const struct compute *c, const char *data,
                               uint32_t i)
{
    uint32_t n = (uint32_t)c->count;
    const char *numbers = data + 8ul * n;
    struct piece p;

    memcpy(&p.input, data + 8ul * i, sizeof p.input);
    memcpy(&p.offset, numbers + 4ul * i, sizeof p.offset);
    memcpy(&p.size, numbers + 4ul * (n + i), sizeof p.size);
    memcpy(&p.count, numbers + 4ul * (2 * n + i), sizeof p.count);
    p.is_contiguous = !c->is_cast || numbers[12ul * n + i];
    if (!p.is_contiguous)
        memcpy(&p.shape, data + shapes_place(n) + i * sizeof p.shape,
               sizeof p.shape);
    return p;
}

/* CatArrIndexToOffset::compute: the place of element INDEX of what has SHAPE,
 * but SIZE along the dimension of the concatenation. */
static uint64_t cat_offset(const struct cat *cat, const struct shape *shape,
                           uint32_t size, uint64_t index)
{
    uint64_t offset = 0;

    for (int i = cat->dims - 1; i >= 1; i--) {
        uint32_t length = i == cat->dim ? size : shape->sizes[i];

        if (!length)
            return 0;
        offset += index % length * shape->strides[i];
        index /= length;
    }
    return offset + index * shape->strides[0];
}

/* How many elements of what has SHAPE, from one that is a multiple of that on,
 * lie one after the other. */
static uint64_t row_length(const struct cat *cat, const struct shape *shape,
                           uint32_t size)
{
    uint64_t row = 1;

    for (int i = cat->dims - 1; i >= 0 && shape->strides[i] == row; i--) {
        if (i == cat->dim)
            return row * size;
        row *= shape->sizes[i];
    }
    return row;
}

/* Rows that lie in one piece on both sides: each of one side's is a multiple
 * of the other's, as both are products of the last sizes. */
static void piece_move(const struct cat *cat, const struct piece *p)
{
    uint64_t base = cat->out + (uint64_t)p->offset * cat->stride *
                                   (cat->unit / cat->scale);
    uint32_t size =
        cat->scale > 1 ? p->size * cat->stride / cat->scale : p->size;
    uint64_t count = p->count / cat->scale;
    uint64_t row = row_length(cat, &cat->shape, size), own;

    if (!p->is_contiguous &&
        (own = row_length(cat, &p->shape, size)) < row)
        row = own;
    for (uint64_t i = 0; row && i < count; i += row) {
        uint64_t from =
            p->is_contiguous ? i : cat_offset(cat, &p->shape, size, i);
        uint64_t to = cat_offset(cat, &cat->shape, size, i);
        uint64_t length = row < count - i ? row : count - i;

        memsim_values_copy(base + to * cat->unit, p->input + from * cat->unit,
                           length * cat->unit);
    }
}

/* Whether all of P is the same number. */
static bool piece_constant(const struct compute *c, const struct piece *p)
{
    unsigned char value[16];

    return p->is_contiguous &&
           values_constant(p->input, (uint64_t)p->count * c->bytes, c->bytes,
                           value);
}

/* (out, metadata, TensorSizeStride, int dimension, uint32_t its stride). The
 * vectorized kernel is given the product of the sizes that follow instead of
 * the stride. */
static void run_cat(const struct compute *c, const struct kernel_launch *launch)
{
    uint32_t scale = c->layout ? (uint32_t)c->layout : 1;
    struct cat cat = {.out = compute_u64(launch, 0),
                      .dims = c->form,
                      .dim = (int)compute_u32(launch, 3),
                      .stride = compute_u32(launch, 4),
                      .scale = scale,
                      .unit = c->bytes * scale};

    if (!values_window(cat.out))
        return;
    memcpy(&cat.shape, launch->arguments[2], sizeof cat.shape);
    for (uint32_t y = 0; y < launch->grid[1] && y < (uint32_t)c->count; y++) {
        struct piece p = piece_read(c, launch->arguments[1], y);

        if (values_window(p.input) &&
            ((uint64_t)p.count * c->bytes <= VALUES_COPY_BYTES ||
             piece_constant(c, &p)))
            piece_move(&cat, &p);
    }
}

/* The next literal template argument, "Li128E"; -1 where there is none. */
static int read_literal(const char **text)
{
    int value = 0;

    if (**text != 'L')
        return -1;
    for (*text += 2; **text >= '0' && **text <= '9'; ++*text)
        value = 10 * value + **text - '0';
    if (**text != 'E')
        return -1;
    ++*text;
    return value;
}

/* CatArrInputTensorMetadata of C->count. */
static uint32_t cat_reach(const struct compute *c,
                          const struct kernel_launch *launch, int i)
{
    uint32_t n = (uint32_t)c->count;

    (void)launch;
    (void)i;
    return shapes_place(n) +
           (c->is_cast ? n * (uint32_t)sizeof(struct shape) : 0);
}

bool compute_cat_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "OpaqueTypeILj");
    int shapes;

    c->run = run_cat;
    c->reach = cat_reach;
    if (!text)
        return false;
    c->bytes = (uint32_t)*text - '0';
    if (text[1] == '6')
        c->bytes = 16;
    text = name_after(text, "EEEj");
    if (!text)
        text = name_after(name, "EEj");
    if (!text)
        return false;
    c->form = read_literal(&text);  /* dimensions */
    c->count = read_literal(&text); /* pieces at most */
    shapes = read_literal(&text);   /* as many, or one that nothing reads */
    if (c->form < 1 || c->form > CAT_DIMS || c->count < 1 || shapes < 1)
        return false;
    /* The plain kernel alone takes inputs that are not contiguous. */
    c->is_cast = shapes == c->count && !strstr(name, "_contigI") &&
                 !strstr(name, "_vectorizedI");
    if (strstr(name, "_vectorizedI")) {
        read_literal(&text); /* alignment, in bytes */
        c->layout = read_literal(&text);
        return c->layout > 0;
    }
    return true;
}
