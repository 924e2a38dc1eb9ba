/* SPDX-License-Identifier: Apache-2.0
 * Work whose record says all of it: calls of cuBLAS and cuDNN, copies. */
#include <stdlib.h>
#include <string.h>

#include "kernels/work_internal.h"

/* --- matrix products ------------------------------------------------------ */

/* cudaDataType (library_types.h): bytes of an element, type of arithmetic. */
static const struct data_type {
    uint16_t number;
    uint8_t bytes, type;
} data_types[] = {
    {0, 4, WORK_FP32}, {1, 8, WORK_FP64},     {2, 2, WORK_FP16},
    {3, 1, WORK_INT8}, {4, 8, WORK_FP32},     {5, 16, WORK_FP64},
    {8, 1, WORK_INT8}, {10, 4, WORK_INTEGER}, {14, 2, WORK_BF16},
    {28, 1, WORK_FP8}, {29, 1, WORK_FP8},     {33, 1, WORK_FP4},
};

#define CUDA_R_32F 0
#define CUDA_R_64F 1

/* cublasComputeType_t and cublasMath_t (cublas_api.h). */
#define COMPUTE_32F_FAST_16F    74
#define COMPUTE_32F_FAST_16BF   75
#define COMPUTE_32F_FAST_TF32   77
#define COMPUTE_32F             68
#define MATH_TF32               3
#define MATH_MODE_BITS          15
#define EPILOGUE_BIAS           4 /* cublasLtEpilogue_t's bits */
#define EPILOGUE_BACKWARD       (8 | 64)
#define EPILOGUE_AUX            128
#define EPILOGUE_BIAS_GRADIENTS (16 | 256 | 512)

uint32_t work_data_type(uint64_t number, enum work_type *type)
{
    for (size_t i = 0; i < sizeof data_types / sizeof *data_types; i++)
        if (data_types[i].number == number) {
            *type = (enum work_type)data_types[i].type;
            return data_types[i].bytes;
        }
    return 0;
}

static const struct data_type *data_type_of(uint64_t number)
{
    for (size_t i = 0; i < sizeof data_types / sizeof *data_types; i++)
        if (data_types[i].number == (number & UINT16_MAX))
            return &data_types[i];
    return &data_types[0];
}

/* fp32 operands: whether tensor cores may take them as a narrower type. */
static enum work_type fp32_arithmetic(uint64_t compute, uint64_t math)
{
    switch (compute) {
    case COMPUTE_32F_FAST_16F:
        return WORK_FP16;
    case COMPUTE_32F_FAST_16BF:
        return WORK_BF16;
    case COMPUTE_32F_FAST_TF32:
        return WORK_TF32;
    case COMPUTE_32F:
        return (math & MATH_MODE_BITS) == MATH_TF32 ? WORK_TF32 : WORK_FP32;
    default:
        return WORK_FP32;
    }
}

/* What bias and auxiliary tensors of an epilogue add, for each matrix: a bias
 * is read, its gradient written; what GELU or ReLU saw is written for the
 * backward one, which reads it. */
static void epilogue_add(const struct work_gemm *g, double batch,
                         struct work *work)
{
    double row = batch * (double)g->n * g->out_bytes;
    double matrix = row * (double)g->m;

    if (g->epilogue & EPILOGUE_BIAS)
        work->read_bytes += row;
    if (g->epilogue & EPILOGUE_BIAS_GRADIENTS)
        work->written_bytes += row;
    if (g->epilogue & EPILOGUE_AUX)
        *(g->epilogue & EPILOGUE_BACKWARD ? &work->read_bytes
                                          : &work->written_bytes) += matrix;
}

/* cuBLAS counts columns first: its result, transposed, is ours, with A and B
 * in each other's place. */
static void gemm_shape(const struct trace_gemm *r, struct work_gemm *g)
{
    *g = (struct work_gemm){
        .m = r->n,
        .n = r->m,
        .k = r->k,
        .batch = r->batch,
        .lda = r->lda_ldb >> 32,
        .ldb = r->lda_ldb & UINT32_MAX,
        .ldc = r->ldc_ldd & UINT32_MAX,
        .alignment = (uint32_t)r->alignment,
        .transpose_a = r->transpose_a_b >> 32,
        .transpose_b = r->transpose_a_b & UINT32_MAX,
        .epilogue = (uint32_t)r->epilogue,
    };
    if (!g->batch)
        g->batch = 1;
    /* A batch of addresses has no stride at all. */
    g->shared_a = g->batch > 1 && r->stride_c && !r->stride_b;
    g->shared_b = g->batch > 1 && r->stride_c && !r->stride_a;
}

void work_gemm_moves(const uint32_t bytes[3], bool accumulates,
                     struct work *work)
{
    const struct work_gemm *g = &work->gemm;
    double share = work->type == WORK_FP4 ? 0.5 : 1; /* of a byte, an element */
    double m = (double)g->m, n = (double)g->n, k = share * (double)g->k;
    double batch = (double)g->batch;

    work->elements = g->m * g->n * g->batch;
    work->flops = 2 * m * n * (double)g->k * batch;
    work->read_bytes = (g->shared_a ? 1 : batch) * m * k * bytes[0] +
                       (g->shared_b ? 1 : batch) * k * n * bytes[1];
    if (accumulates)
        work->read_bytes += batch * m * n * bytes[2];
    work->written_bytes = batch * m * n * bytes[2];
    epilogue_add(g, batch, work);
}

void work_gemm(const struct op *op, struct work *work)
{
    const struct trace_gemm *r = RECORD_OF(op, GEMM, gemm);
    uint64_t types = r->types_a_b_c_d;
    const struct data_type *a = data_type_of(types >> 16);
    const struct data_type *b = data_type_of(types);
    const struct data_type *c = data_type_of(types >> 32);
    struct work_gemm *g = &work->gemm;

    gemm_shape(r, g);
    g->out_bytes = c->bytes;
    work->family = WORK_GEMM;
    work->element_bytes = a->bytes;
    work->type = (enum work_type)a->type;
    if (work->type == WORK_FP32)
        work->type =
            fp32_arithmetic(r->compute_scale & UINT32_MAX, r->math_mode);
    work_gemm_moves((const uint32_t[]){a->bytes, b->bytes, c->bytes},
                    r->accumulates, work);
}

/* --- text of dimensions --------------------------------------------------- */

#define DIMENSIONS_MAX 5

/* The numbers of KEY, "x" of " x=8,3,224,224 "; how many there are. */
static unsigned text_numbers(const struct op *op, const char *key,
                             uint64_t numbers[DIMENSIONS_MAX])
{
    size_t length = strlen(key);
    const char *at = op->text, *end = op->text + op->text_bytes;
    unsigned count = 0;

    memset(numbers, 0, DIMENSIONS_MAX * sizeof *numbers);
    while (at && end - at > (ptrdiff_t)length) {
        if (!memcmp(at, key, length) && at[length] == '=')
            break;
        const char *space = memchr(at, ' ', (size_t)(end - at));
        at = space ? space + 1 : NULL;
    }
    if (!at || end - at <= (ptrdiff_t)length)
        return 0;
    for (at += length + 1; at < end && count < DIMENSIONS_MAX; at++) {
        while (at < end && *at >= '0' && *at <= '9')
            numbers[count] = numbers[count] * 10 + (uint64_t)(*at++ - '0');
        count++;
        if (at >= end || *at != ',')
            break;
    }
    return count;
}

uint64_t work_text_number(const struct op *op, const char *key)
{
    uint64_t numbers[DIMENSIONS_MAX];

    text_numbers(op, key, numbers);
    return numbers[0];
}

/* cudnnDataType_t (cudnn_graph.h). */
static const struct data_type cudnn_types[] = {
    {0, 4, WORK_FP32}, {1, 8, WORK_FP64},    {2, 2, WORK_FP16},
    {3, 1, WORK_INT8}, {4, 4, WORK_INTEGER}, {9, 2, WORK_BF16},
    {12, 1, WORK_FP8}, {13, 1, WORK_FP8},
};

static void set_cudnn_type(struct work *work, uint64_t type)
{
    const struct data_type *found = &cudnn_types[0];

    for (size_t i = 0; i < sizeof cudnn_types / sizeof *cudnn_types; i++)
        if (cudnn_types[i].number == type)
            found = &cudnn_types[i];
    work->type = (enum work_type)found->type;
    work->element_bytes = found->bytes;
}

/* --- convolutions --------------------------------------------------------- */

bool work_text_has(const struct op *op, const char *word)
{
    return op->text && memmem(op->text, op->text_bytes, word, strlen(word));
}

/* Two dimensions as they are; one and three as h is 1 and with depth. */
static void set_pair(uint64_t *h, uint64_t *w, const uint64_t *numbers,
                     unsigned count)
{
    *h = count > 1 ? numbers[count - 2] : 0;
    *w = count > 0 ? numbers[count - 1] : 0;
}

static bool convolution_shape(const struct op *op, struct work_convolution *c)
{
    uint64_t x[DIMENSIONS_MAX], w[DIMENSIONS_MAX], y[DIMENSIONS_MAX];
    uint64_t pair[DIMENSIONS_MAX];
    unsigned dimensions = text_numbers(op, "x", x);

    if (dimensions < 3 || text_numbers(op, "w", w) != dimensions ||
        text_numbers(op, "y", y) != dimensions)
        return false;
    *c = (struct work_convolution){
        .n = x[0],
        .c = x[1],
        .k = w[0],
        .d = dimensions > 4 ? x[2] : 1,
        .t = dimensions > 4 ? w[2] : 1,
        .groups = work_text_number(op, "groups"),
        .layout = work_text_has(op, "layout=nhwc") ? WORK_NHWC : WORK_NCHW,
    };
    if (!c->groups)
        c->groups = 1;
    set_pair(&c->h, &c->w, x, dimensions > 3 ? dimensions : 1);
    set_pair(&c->r, &c->s, w, dimensions > 3 ? dimensions : 1);
    set_pair(&c->out_h, &c->out_w, y, dimensions > 3 ? dimensions : 1);
    if (dimensions == 3) {
        c->h = c->r = c->out_h = 1;
        c->w = x[2];
        c->s = w[2];
        c->out_w = y[2];
    }
    set_pair(&c->pad_h, &c->pad_w, pair, text_numbers(op, "pad", pair));
    set_pair(&c->stride_h, &c->stride_w, pair,
             text_numbers(op, "stride", pair));
    set_pair(&c->dilation_h, &c->dilation_w, pair,
             text_numbers(op, "dilation", pair));
    return true;
}

void work_convolution_moves(uint64_t out_depth, struct work *work)
{
    const struct work_convolution *c = &work->convolution;
    double in = (double)c->n * (double)c->c * (double)c->d * (double)c->h *
                (double)c->w;
    double filter = (double)c->k * (double)(c->c / c->groups) * (double)c->t *
                    (double)c->r * (double)c->s;
    double out = (double)c->n * (double)c->k * (double)out_depth *
                 (double)c->out_h * (double)c->out_w;
    double written = work->family == WORK_CONVOLUTION_DGRAD   ? in
                     : work->family == WORK_CONVOLUTION_WGRAD ? filter
                                                              : out;

    work->elements = (uint64_t)written;
    work->flops = 2 * out * filter / (double)(c->k ? c->k : 1);
    work->written_bytes = written * work->element_bytes;
    work->read_bytes = (in + filter + out - written) * work->element_bytes;
}

void work_convolution(const struct op *op, struct work *work)
{
    static const enum work_family families[] = {WORK_CONVOLUTION_FORWARD,
                                                WORK_CONVOLUTION_DGRAD,
                                                WORK_CONVOLUTION_WGRAD};
    const struct trace_convolution *r = RECORD_OF(op, CONVOLUTION, convolution);
    uint64_t operation = r->operation;
    struct work_convolution *c = &work->convolution;
    uint64_t y[DIMENSIONS_MAX];

    work->family = families[operation < 3 ? operation : 0];
    set_cudnn_type(work, r->type);
    if (work->type == WORK_FP32 && r->engine)
        work->type = WORK_TF32;
    if (!convolution_shape(op, c)) {
        work->source = WORK_UNKNOWN;
        return;
    }
    unsigned dimensions = text_numbers(op, "y", y);
    work_convolution_moves(dimensions > 4 ? y[2] : 1, work);
}

/* --- attention ------------------------------------------------------------ */

void work_attention(const struct op *op, struct work *work)
{
    const struct trace_attention *r = RECORD_OF(op, ATTENTION, attention);
    bool backward = r->operation;
    uint64_t q[DIMENSIONS_MAX], k[DIMENSIONS_MAX], v[DIMENSIONS_MAX];

    work->family = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION_FORWARD;
    set_cudnn_type(work, r->type);
    if (text_numbers(op, "q", q) != 4 || text_numbers(op, "k", k) != 4 ||
        text_numbers(op, "v", v) != 4) {
        work->source = WORK_UNKNOWN;
        return;
    }
    const struct work_attention_shape shape = {
        .batch = q[0],
        .heads = q[1],
        .kv_heads = k[1],
        .queries = q[2],
        .keys = k[2],
        .head_size = q[3],
        .value_size = v[3],
        .causal = work_text_number(op, "causal"),
        .dropout = !work_text_has(op, "dropout=0 "),
        .bias = work_text_number(op, "bias"),
        .kernel = WORK_ATTENTION_CUDNN,
    };
    work_attention_set(&shape, backward, work);
}

/* --- other calls ---------------------------------------------------------- */

/* Calls whose first two numbers are bytes read and written, and those that do
 * nothing on the device. */
static const struct library_call {
    const char *name;
    enum work_family family;
    enum work_rate rate;
} library_calls[] = {
    {"cublasSetWorkspace", WORK_NOTHING, WORK_RATE_NONE},
    {"batch norm inference", WORK_NORM_FORWARD, WORK_RATE_NONE},
    {"batch norm training", WORK_NORM_FORWARD, WORK_RATE_CHANNEL_FORWARD},
    {"batch norm backward", WORK_NORM_BACKWARD, WORK_RATE_CHANNEL_BACKWARD},
    {"pooling forward", WORK_POOL, WORK_RATE_NONE},
    {"pooling backward", WORK_POOL, WORK_RATE_NONE},
};

/* cuDNN's batch norm has a block of 512 threads for each channel. */
#define CHANNEL_THREADS 512

static void set_channels(const struct op *op, enum work_rate rate,
                         struct work *work)
{
    uint64_t x[DIMENSIONS_MAX];

    if (rate == WORK_RATE_NONE || text_numbers(op, "x", x) < 2)
        return;
    work->rate = (uint8_t)rate;
    work->blocks = x[1];
    work->threads = CHANNEL_THREADS;
}

void work_library_call(const struct op *op, const char *name, struct work *work)
{
    const struct trace_library_call *r =
        RECORD_OF(op, LIBRARY_CALL, library_call);

    work->family = WORK_OTHER;
    work->source = WORK_UNKNOWN;
    if (name && work_math(op, name, work))
        return;
    for (size_t i = 0; i < sizeof library_calls / sizeof *library_calls; i++) {
        if (!name || strcmp(name, library_calls[i].name))
            continue;
        work->family = library_calls[i].family;
        work->source = WORK_EXACT;
        if (work->family == WORK_NOTHING)
            return;
        work->read_bytes = (double)r->a;
        work->written_bytes = (double)r->b;
        work->element_bytes = 4;
        work->elements = (uint64_t)(work->written_bytes / 4);
        work->flops = (double)work->elements;
        set_channels(op, library_calls[i].rate, work);
    }
}

/* --- copies --------------------------------------------------------------- */

void work_copy(const struct op *op, struct work *work)
{
    const struct trace_copy *r = RECORD_OF(op, COPY, copy);
    uint64_t bytes = r->bytes;

    work->direction = (uint32_t)r->direction;
    if (work->direction == TRACE_HOST_TO_HOST)
        return;
    work->family = WORK_COPY;
    work->pinned = r->pinned;
    work->type = WORK_INTEGER;
    work->element_bytes = 1;
    work->elements = bytes;
    work->read_bytes = work->written_bytes = (double)bytes;
}

void work_set(const struct op *op, struct work *work)
{
    uint64_t bytes = RECORD_OF(op, SET, set)->bytes;

    work->family = WORK_SET;
    work->type = WORK_INTEGER;
    work->element_bytes = 1;
    work->elements = bytes;
    work->written_bytes = (double)bytes;
}

void work_collective(const struct op *op, struct work *work)
{
    uint64_t bytes = RECORD_OF(op, COLLECTIVE, collective)->bytes;

    work->family = WORK_COLLECTIVE;
    work->element_bytes = 1;
    work->elements = bytes;
    work->read_bytes = work->written_bytes = (double)bytes;
}
