/* SPDX-License-Identifier: Apache-2.0
 * From an operator's name and columns to what it has to do. */
#include "common/base/err.h"
#include "fitting/ops.h"
#include "runtime/cost/cost_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EXTENT 1e12

typedef int describe_row(const struct ops_row *row, struct work *work,
                         uint64_t *group, struct err *err);

const char *ops_row_text(const struct ops_row *row, const char *name)
{
    for (int i = 0; i < row->count; i++)
        if (!strcmp(row->names[i], name))
            return row->values[i];
    return NULL;
}

static int read_extent(const struct ops_row *row, const char *name,
                       uint64_t *value, struct err *err)
{
    const char *text = ops_row_text(row, name);
    char *end;

    if (!text)
        return err_set(err, "no column %s", name);
    double number = strtod(text, &end);
    if (end == text || *end || !(number >= 0 && number <= MAX_EXTENT))
        return err_set(err, "%s is \"%s\", not a number from 0 to 1e12", name,
                       text);
    *value = (uint64_t)number;
    return 0;
}

/* The same where the column may be missing. */
static int read_extent_or(const struct ops_row *row, const char *name,
                          uint64_t otherwise, uint64_t *value, struct err *err)
{
    const char *text = ops_row_text(row, name);

    *value = otherwise;
    return text && *text ? read_extent(row, name, value, err) : 0;
}

struct want {
    const char *name;
    uint64_t *value;
};

static int read_extents(const struct ops_row *row, const struct want *wants,
                        size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (read_extent(row, wants[i].name, wants[i].value, err))
            return -1;
    return 0;
}

static uint64_t group_of(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t words[4] = {a, b, c, d};
    uint64_t hash = 1469598103934665603u;

    for (int i = 0; i < 4; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Types that have scales; their products' results are of 16 bits. */
static bool is_scaled(enum work_type type)
{
    return type == WORK_FP8 || type == WORK_FP4;
}

/* Of one element of an operand. */
static double operand_bytes(const struct work *work)
{
    return work->type == WORK_FP4 ? 0.5 : work->element_bytes;
}

static int describe_gemm(const struct ops_row *row, struct work *work,
                         uint64_t *group, struct err *err)
{
    struct work_gemm *g = &work->gemm;
    const char *layout = ops_row_text(row, "layout");
    const char *op = ops_row_text(row, "op");
    const struct want wants[] = {
        {"b", &g->batch}, {"m", &g->m}, {"n", &g->n}, {"k", &g->k}};

    if (read_extents(row, wants, 4, err))
        return -1;
    double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    double batch = (double)g->batch;

    /* BLAS's letters, of the column-major call: T first is a weight [n][k] */
    g->transpose_b = layout ? layout[0] == 'T' : !strcmp(op, "linear");
    g->transpose_a = layout && strlen(layout) > 1 && layout[1] == 'T';
    g->out_bytes = is_scaled(work->type) ? 2 : work->element_bytes;
    work->flops = 2 * batch * m * n * k;
    work->read_bytes = operand_bytes(work) * batch * (m * k + k * n);
    work->written_bytes = g->out_bytes * batch * m * n;
    work->elements = (uint64_t)(batch * m * n);
    *group = g->batch > 1 ? group_of(1, g->n, g->k, g->m)
                          : group_of(0, g->n, g->k, 0);
    return 0;
}

static enum work_attention kernel_of(const char *backend)
{
    if (backend && strstr(backend, "cudnn"))
        return WORK_ATTENTION_CUDNN;
    if (backend &&
        (strstr(backend, "fa2") || !strcmp(backend, "flash_attention")))
        return WORK_ATTENTION_FLASH2;
    if (backend && strstr(backend, "efficient"))
        return WORK_ATTENTION_EFFICIENT;
    return WORK_ATTENTION_FLASH3;
}

static int describe_attention(const struct ops_row *row, struct work *work,
                              uint64_t *group, struct err *err)
{
    struct work_attention_shape *a = &work->attention;
    uint64_t causal;
    const struct want wants[] = {{"b", &a->batch},      {"hq", &a->heads},
                                 {"hkv", &a->kv_heads}, {"sq", &a->queries},
                                 {"skv", &a->keys},     {"d", &a->head_size},
                                 {"causal", &causal}};

    if (read_extents(row, wants, 7, err) ||
        read_extent_or(row, "dv", a->head_size, &a->value_size, err))
        return -1;
    a->causal = causal != 0;
    a->kernel = kernel_of(ops_row_text(row, "backend"));

    double q = (double)(a->batch * a->heads * a->queries);
    double kv = (double)(a->batch * a->kv_heads * a->keys);
    double d = (double)a->head_size, dv = (double)a->value_size;
    bool backward = work->family == WORK_ATTENTION_BACKWARD;

    work->flops = 2 * q * (double)a->keys * (d + dv) * (a->causal ? 0.5 : 1) *
                  (backward ? 2.5 : 1);
    work->read_bytes =
        work->element_bytes * (q * d + kv * (d + dv) + (backward ? q * dv : 0));
    work->written_bytes =
        work->element_bytes * (backward ? q * d + kv * (d + dv) : q * dv);
    *group = group_of(a->heads, a->kv_heads, a->head_size, a->queries);
    return 0;
}

static uint64_t out_extent(uint64_t in, uint64_t pad, uint64_t filter,
                           uint64_t stride)
{
    uint64_t padded = in + 2 * pad;

    return padded < filter || !stride ? 0 : (padded - filter) / stride + 1;
}

static void count_convolution(struct work *work)
{
    struct work_convolution *c = &work->convolution;
    double out = (double)(c->n * c->k * c->out_h * c->out_w);
    double in = (double)(c->n * c->c * c->h * c->w);
    double filter = (double)(c->k * c->c * c->r * c->s) / (double)c->groups;
    double sum = work->element_bytes * (in + out + filter);
    double written = work->element_bytes *
                     (work->family == WORK_CONVOLUTION_FORWARD ? out
                      : work->family == WORK_CONVOLUTION_DGRAD ? in
                                                               : filter);

    work->flops = 2 * out * (double)(c->c * c->r * c->s) / (double)c->groups;
    work->read_bytes = sum - written;
    work->written_bytes = written;
    work->elements = (uint64_t)out;
}

static int describe_convolution(const struct ops_row *row, struct work *work,
                                uint64_t *group, struct err *err)
{
    struct work_convolution *c = &work->convolution;
    const char *layout = ops_row_text(row, "layout");
    const struct want wants[] = {{"n", &c->n},
                                 {"c", &c->c},
                                 {"h", &c->h},
                                 {"w", &c->w},
                                 {"k", &c->k},
                                 {"r", &c->r},
                                 {"s", &c->s},
                                 {"stride_h", &c->stride_h},
                                 {"stride_w", &c->stride_w},
                                 {"pad_h", &c->pad_h},
                                 {"pad_w", &c->pad_w},
                                 {"groups", &c->groups}};

    if (read_extents(row, wants, sizeof wants / sizeof *wants, err))
        return -1;
    if (!c->groups)
        return err_set(err, "groups is 0");
    c->d = c->t = c->dilation_h = c->dilation_w = 1;
    c->layout = layout && !strcmp(layout, "NHWC") ? WORK_NHWC : WORK_NCHW;
    c->out_h = out_extent(c->h, c->pad_h, c->r, c->stride_h);
    c->out_w = out_extent(c->w, c->pad_w, c->s, c->stride_w);
    count_convolution(work);
    *group = group_of(c->c, c->k, c->r * 100 + c->stride_h, c->groups);
    return 0;
}

static int read_bytes(const struct ops_row *row, struct work *work,
                      struct err *err)
{
    uint64_t bytes, read;

    if (read_extent(row, "bytes", &bytes, err) ||
        read_extent_or(row, "read_bytes", bytes, &read, err))
        return -1;
    work->read_bytes = (double)bytes;
    if (ops_row_text(row, "read_bytes")) {
        work->read_bytes = (double)read;
        work->written_bytes = (double)bytes - (double)read;
    } else if ((double)bytes > work->element_bytes * (double)work->elements) {
        work->written_bytes = work->element_bytes * (double)work->elements;
        work->read_bytes -= work->written_bytes;
    }
    return 0;
}

static int describe_plain(const struct ops_row *row, struct work *work,
                          uint64_t *group, struct err *err)
{
    if (read_extent(row, "numel", &work->elements, err) ||
        read_bytes(row, work, err))
        return -1;
    work->flops = (double)work->elements;
    *group = group_of(work->elements, 0, 0, 0);
    return 0;
}

/* sort: cub's passes; block_sort: in a block; top_k: what selects. */
static int describe_sort(const struct ops_row *row, struct work *work,
                         uint64_t *group, struct err *err)
{
    const char *op = ops_row_text(row, "op");

    work->sort = !strcmp(op, "block_sort") ? WORK_SORT_BLOCKS
                 : !strcmp(op, "top_k")    ? WORK_SORT_SELECT
                                           : WORK_SORT_PASSES;
    return describe_plain(row, work, group, err);
}

static int describe_rows(const struct ops_row *row, struct work *work,
                         uint64_t *group, struct err *err)
{
    struct work_rows *r = &work->rows;

    if (read_extent(row, "rows", &r->rows, err) ||
        read_extent(row, "cols", &r->columns, err) ||
        read_extent_or(row, "stride", 1, &r->stride, err))
        return -1;
    work->elements = r->rows * r->columns;
    work->flops = 4 * (double)work->elements;
    *group = group_of(r->columns, 0, 0, 0);
    return read_bytes(row, work, err);
}

/* How a table describes work of a shape. */
#define describe_none    describe_plain
#define describe_softmax describe_rows

#define DESCRIBE(id, name, shape) [WORK_##id] = describe_##shape,
static describe_row *const describers[WORK_FAMILIES] = {
    WORK_FAMILY_LIST(DESCRIBE)};
#undef DESCRIBE

static const struct operator_row {
    const char *name;
    enum work_family family;
} operators[] = {
    {"linear", WORK_GEMM},
    {"mm", WORK_GEMM},
    {"bmm", WORK_GEMM},
    {"addmm", WORK_GEMM},
    {"sdpa_fwd", WORK_ATTENTION_FORWARD},
    {"sdpa_bwd", WORK_ATTENTION_BACKWARD},
    {"conv2d_fwd", WORK_CONVOLUTION_FORWARD},
    {"conv2d_bwd_input", WORK_CONVOLUTION_DGRAD},
    {"conv2d_bwd_weight", WORK_CONVOLUTION_WGRAD},
    {"softmax", WORK_SOFTMAX_FORWARD},
    {"log_softmax", WORK_SOFTMAX_FORWARD},
    {"softmax_bwd", WORK_SOFTMAX_BACKWARD},
    {"layer_norm", WORK_NORM_FORWARD},
    {"rms_norm", WORK_NORM_FORWARD},
    {"batch_norm", WORK_NORM_FORWARD},
    {"layer_norm_bwd", WORK_NORM_BACKWARD},
    {"reduce", WORK_REDUCE},
    {"optimizer", WORK_OPTIMIZER},
    {"pool", WORK_POOL},
    {"index", WORK_INDEX},
    {"sort", WORK_SORT},
    {"block_sort", WORK_SORT},
    {"top_k", WORK_SORT},
    {"cast", WORK_STRIDED},
    {"cat", WORK_STRIDED},
    {"copy", WORK_STRIDED},
    {"strided", WORK_STRIDED},
};

/* Any other operator with a number of elements is arithmetic on them. */
static const struct operator_row plain = {"", WORK_ELEMENTWISE};

static const struct operator_row *find_operator(const struct ops_row *row,
                                                const char *op)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (!strcmp(operators[i].name, op))
            return &operators[i];
    return ops_row_text(row, "numel") ? &plain : NULL;
}

static const struct {
    const char *name;
    enum work_type type;
    uint32_t bytes;
} types[] = {
    {"fp32", WORK_FP32, 4}, {"tf32", WORK_TF32, 4},   {"fp16", WORK_FP16, 2},
    {"bf16", WORK_BF16, 2}, {"fp64", WORK_FP64, 8},   {"fp8", WORK_FP8, 1},
    {"int8", WORK_INT8, 1}, {"int", WORK_INTEGER, 4}, {"fp4", WORK_FP4, 1},
};

static int read_type(const struct ops_row *row, struct work *work,
                     struct err *err)
{
    const char *text = ops_row_text(row, "dtype");

    for (size_t i = 0; text && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, text)) {
            work->type = types[i].type;
            work->element_bytes = types[i].bytes;
            return 0;
        }
    return err_set(err,
                   "dtype \"%s\" is none of fp64, fp32, tf32, fp16, bf16, "
                   "fp8, fp4, int8, int",
                   text ? text : "");
}

int ops_row_work(const struct ops_row *row, struct work *work, uint64_t *group,
                 struct err *err)
{
    const char *op = ops_row_text(row, "op");
    const struct operator_row *operator= op ? find_operator(row, op) : NULL;

    if (!operator)
        return err_set(err, "operator \"%s\" is not known: see doc/costs.md",
                       op ? op : "");
    *work = (struct work){.family = operator->family, .source = WORK_EXACT};
    return read_type(row, work, err)
               ? -1
               : describers[operator->family](row, work, group, err);
}
