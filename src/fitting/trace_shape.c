/* SPDX-License-Identifier: Apache-2.0 */
#include "fitting/trace_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXTENT_MAX 1e12

/* --- tensors -------------------------------------------------------------- */

static unsigned type_bytes(const char *type)
{
    static const struct {
        const char *name;
        unsigned bytes;
    } types[] = {{"float", 4},         {"double", 8},
                 {"c10::Half", 2},     {"c10::BFloat16", 2},
                 {"long int", 8},      {"long", 8},
                 {"int", 4},           {"bool", 1},
                 {"unsigned char", 1}, {"signed char", 1},
                 {"c10::Float8_e4m3fn", 1}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, type))
            return types[i].bytes;
    return 0;
}

/* The items of a list in brackets, one after the other. *AT is behind the
 * bracket; false at the list's end. */
static bool item_next(const char **at, const char **item, size_t *length)
{
    const char *start = *at, *end = start;
    int depth = 0;

    if (!*start || *start == ']')
        return false;
    for (; *end && (depth || (*end != ',' && *end != ']')); end++)
        depth += (*end == '[') - (*end == ']');
    *item = start;
    *length = (size_t)(end - start);
    *at = end + (*end == ',');
    return true;
}

/* The numbers of a list; how many, -1 where it is no list of numbers. */
static int numbers_read(const char *item, uint64_t numbers[TRACE_DIMENSIONS])
{
    const char *at = item + 1, *number;
    size_t length;
    int count = 0;

    if (*item != '[')
        return 0; /* a scalar */
    while (item_next(&at, &number, &length)) {
        char *end;
        double value = strtod(number, &end);
        if (end != number + length || !(value >= 0) || value > EXTENT_MAX ||
            count == TRACE_DIMENSIONS)
            return -1;
        numbers[count++] = (uint64_t)value;
    }
    return count;
}

static void tensor_size(struct trace_tensor *t, int dimensions)
{
    t->element_bytes = type_bytes(t->type);
    if (dimensions <= 0 || !t->element_bytes)
        return;
    t->dimensions = (unsigned)dimensions;
    t->elements = 1;
    for (int i = 0; i < dimensions; i++)
        t->elements *= (double)t->sizes[i];
    if (t->elements > EXTENT_MAX)
        t->elements = t->dimensions = 0;
}

bool trace_tensors_read(struct trace_tensors *t, const char *dims,
                        const char *types, const char *strides)
{
    const char *size, *type, *stride;
    size_t length;

    *t = (struct trace_tensors){.count = 0};
    if (*dims++ != '[' || *types++ != '[')
        return false;
    if (strides && *strides == '[')
        strides++;
    while (t->count < TRACE_TENSORS && item_next(&dims, &size, &length) &&
           item_next(&types, &type, &length)) {
        struct trace_tensor *to = &t->all[t->count++];
        snprintf(to->type, sizeof to->type, "%.*s", (int)length, type);
        int dimensions = numbers_read(size, to->sizes);
        if (strides && item_next(&strides, &stride, &length) &&
            numbers_read(stride, to->strides) != dimensions)
            memset(to->strides, 0, sizeof to->strides);
        tensor_size(to, dimensions);
    }
    return true;
}

/* --- products ------------------------------------------------------------- */

/* Where the operands are among an operator's arguments. */
static const struct product {
    const char *name;
    unsigned first;
    bool batched;
} products[] = {
    {"aten::mm", 0, false},       {"aten::addmm", 1, false},
    {"aten::addmm_", 1, false},   {"aten::_addmm_activation", 1, false},
    {"aten::bmm", 0, true},       {"aten::baddbmm", 1, true},
    {"aten::baddbmm_", 1, true},  {"aten::_scaled_mm", 0, false},
};

static const struct product *product_find(const char *name)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (!strcmp(products[i].name, name))
            return &products[i];
    return NULL;
}

bool trace_is_product(const char *name)
{
    return product_find(name) != NULL;
}

static enum work_type product_type(const char *type, const char *kernel)
{
    if (!strcmp(type, "c10::Half"))
        return WORK_FP16;
    if (!strcmp(type, "c10::BFloat16"))
        return WORK_BF16;
    if (!strcmp(type, "double"))
        return WORK_FP64;
    if (strstr(type, "Float8"))
        return WORK_FP8;
    if (strcmp(type, "float"))
        return WORK_INT8;
    return strstr(kernel, "tf32") || strstr(kernel, "1688") ? WORK_TF32
                                                            : WORK_FP32;
}

/* BLAS's letters in the name of a kernel of cuBLAS's: of the column-major call,
 * whose first operand is our second. "..._tn_align8", "nvjet_..._TNT". */
static void product_layout(const char *kernel, struct work_gemm *g)
{
    for (const char *at = strchr(kernel, '_'); at; at = strchr(at + 1, '_')) {
        size_t lower = strspn(at + 1, "tn"), upper = strspn(at + 1, "TN");
        char end = at[1 + lower];

        if (!(lower == 2 && (!end || end == '_')) &&
            !(upper == 3 && !at[4]))
            continue;
        g->transpose_b = at[1] == 't' || at[1] == 'T';
        g->transpose_a = at[2] == 't' || at[2] == 'T';
    }
}

/* False where the strides of A do not say. */
static bool is_transposed(const struct trace_tensor *a, bool *transposed)
{
    uint64_t rows = a->strides[a->dimensions - 2];
    uint64_t columns = a->strides[a->dimensions - 1];

    *transposed = rows == 1 && columns != 1;
    return (rows == 1) != (columns == 1);
}

static bool product_extents(const struct trace_tensor *a,
                            const struct trace_tensor *b, bool batched,
                            struct work_gemm *g)
{
    unsigned at = batched;

    if (a->dimensions != 2 + at || b->dimensions != 2 + at ||
        a->sizes[at + 1] != b->sizes[at] || !(a->elements > 0) ||
        !(b->elements > 0) || (batched && a->sizes[0] != b->sizes[0]))
        return false;
    g->m = a->sizes[at];
    g->k = a->sizes[at + 1];
    g->n = b->sizes[at + 1];
    g->batch = batched ? a->sizes[0] : 1;
    return true;
}

bool trace_describe_product(const char *name, const char *kernel,
                            const struct trace_tensors *t, struct work *work)
{
    const struct product *p = product_find(name);
    struct work made = {.family = WORK_GEMM, .source = WORK_EXACT};
    struct work_gemm *g = &made.gemm;

    if (!p || t->count < p->first + 2u)
        return false;
    const struct trace_tensor *a = &t->all[p->first], *b = a + 1;
    if (!product_extents(a, b, p->batched, g))
        return false;
    if (!is_transposed(a, &g->transpose_a) ||
        !is_transposed(b, &g->transpose_b))
        product_layout(kernel, g);
    made.type = product_type(a->type, kernel);
    made.element_bytes = a->element_bytes;
    g->out_bytes = a->element_bytes;
    double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    double batch = (double)g->batch;
    made.flops = 2 * batch * m * n * k;
    made.read_bytes = made.element_bytes * batch * (m * k + k * n);
    made.written_bytes = made.element_bytes * batch * m * n;
    made.elements = (uint64_t)(batch * m * n);
    *work = made;
    return true;
}

/* --- what goes once through the tensors ----------------------------------- */

bool trace_describe_bytes(const struct trace_tensors *t, struct work *work)
{
    const struct trace_tensor *largest = NULL;
    double bytes = 0;

    switch (work->family) {
    case WORK_ELEMENTWISE:
    case WORK_STRIDED:
    case WORK_REDUCE:
    case WORK_NORM_FORWARD:
    case WORK_NORM_BACKWARD:
    case WORK_SOFTMAX_FORWARD:
    case WORK_SOFTMAX_BACKWARD:
        break;
    default:
        return false;
    }
    for (size_t i = 0; i < t->count; i++) {
        bytes += t->all[i].elements * t->all[i].element_bytes;
        if (!largest || t->all[i].elements > largest->elements)
            largest = &t->all[i];
    }
    if (!largest || !(largest->elements > 0))
        return false;
    work->source = WORK_RULE;
    work->elements = (uint64_t)largest->elements;
    work->element_bytes = largest->element_bytes;
    work->read_bytes = bytes;
    work->written_bytes =
        work->family == WORK_REDUCE
            ? 0
            : largest->elements * largest->element_bytes;
    uint64_t columns = largest->sizes[largest->dimensions - 1];
    work->rows = (struct work_rows){
        .rows = work->elements / columns, .columns = columns, .stride = 1};
    return true;
}
