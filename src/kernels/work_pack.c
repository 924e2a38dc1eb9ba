/* SPDX-License-Identifier: Apache-2.0
 * The work of a library's kernel as the words of its launch, which memsim
 * import writes: a profile has the shapes of the operator that launched it.
 *
 *   h     family 0-7, type 8-15, bytes of an element 16-23, rate 24-31,
 *         flags 32-47, bytes of a result's element 48-55
 *   a..g  by family, pairs of 32 bits, the first one low:
 *         product      m n, k batch, lda ldb, ldc alignment
 *         attention    queries keys, heads kv_heads, head value, batch kernel
 *         convolution  n c, h w, k groups, r s, out_h out_w; then strides and
 *                      pads, dilations, depth and the filter's, 16 bits each
 *         recurrent    tokens steps, input hidden, layers directions,
 *                      gates pass
 *         others       elements, rows, columns, bytes read, bytes written,
 *                      blocks threads */
#include "kernels/work_internal.h"

enum {
    FLAG_PART = 1 << 0,
    FLAG_TRANSPOSE_A = 1 << 1,
    FLAG_TRANSPOSE_B = 1 << 2,
    FLAG_CAUSAL = 1 << 3,
    FLAG_DROPOUT = 1 << 4,
    FLAG_NHWC = 1 << 5,
    FLAG_RECURRENT = 1 << 6,
    FLAG_BIAS = 1 << 7,
};

static uint64_t pack_pair(uint64_t low, uint64_t high)
{
    return (low & UINT32_MAX) | high << 32;
}

static uint64_t low_of(uint64_t word)
{
    return word & UINT32_MAX;
}

static uint64_t pack_four(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t mask = UINT16_MAX;

    return (a & mask) | (b & mask) << 16 | (c & mask) << 32 | (d & mask) << 48;
}

static uint64_t part_of(uint64_t word, unsigned i)
{
    return word >> 16 * i & UINT16_MAX;
}

/* --- products ------------------------------------------------------------- */

static uint64_t gemm_pack(const struct work *work, uint64_t w[])
{
    const struct work_gemm *g = &work->gemm;

    w[0] = pack_pair(g->m, g->n);
    w[1] = pack_pair(g->k, g->batch);
    w[2] = pack_pair(g->lda, g->ldb);
    w[3] = pack_pair(g->ldc, g->alignment);
    return (g->transpose_a ? FLAG_TRANSPOSE_A : 0) |
           (g->transpose_b ? FLAG_TRANSPOSE_B : 0);
}

static bool gemm_unpack(const uint64_t w[], uint64_t flags, struct work *work)
{
    uint32_t bytes = work->element_bytes;
    uint32_t out = (uint32_t)(w[7] >> 48 & 255);

    work->gemm = (struct work_gemm){
        .m = low_of(w[0]),
        .n = w[0] >> 32,
        .k = low_of(w[1]),
        .batch = w[1] >> 32,
        .lda = low_of(w[2]),
        .ldb = w[2] >> 32,
        .ldc = low_of(w[3]),
        .alignment = (uint32_t)(w[3] >> 32),
        .transpose_a = flags & FLAG_TRANSPOSE_A,
        .transpose_b = flags & FLAG_TRANSPOSE_B,
        .out_bytes = out ? out : bytes,
    };
    work_gemm_moves((const uint32_t[]){bytes, bytes, work->gemm.out_bytes},
                    false, work);
    return work->elements && work->gemm.k;
}

/* --- attention ------------------------------------------------------------ */

static uint64_t attention_pack(const struct work *work, uint64_t w[])
{
    const struct work_attention_shape *a = &work->attention;

    w[0] = pack_pair(a->queries, a->keys);
    w[1] = pack_pair(a->heads, a->kv_heads);
    w[2] = pack_pair(a->head_size, a->value_size);
    w[3] = pack_pair(a->batch, a->kernel);
    return (a->causal ? FLAG_CAUSAL : 0) | (a->dropout ? FLAG_DROPOUT : 0) |
           (a->bias ? FLAG_BIAS : 0);
}

static bool attention_unpack(const uint64_t w[], uint64_t flags,
                             struct work *work)
{
    const struct work_attention_shape shape = {
        .queries = low_of(w[0]),
        .keys = w[0] >> 32,
        .heads = low_of(w[1]),
        .kv_heads = w[1] >> 32,
        .head_size = low_of(w[2]),
        .value_size = w[2] >> 32,
        .batch = low_of(w[3]),
        .kernel = (enum work_attention)(w[3] >> 32 & 3),
        .causal = flags & FLAG_CAUSAL,
        .dropout = flags & FLAG_DROPOUT,
        .bias = flags & FLAG_BIAS,
    };

    if (!shape.queries || !shape.keys || !shape.heads || !shape.kv_heads)
        return false;
    work_attention_set(&shape, work->family == WORK_ATTENTION_BACKWARD, work);
    return work->elements > 0;
}

/* --- convolutions --------------------------------------------------------- */

static uint64_t convolution_pack(const struct work *work, uint64_t w[])
{
    const struct work_convolution *c = &work->convolution;

    w[0] = pack_pair(c->n, c->c);
    w[1] = pack_pair(c->h, c->w);
    w[2] = pack_pair(c->k, c->groups);
    w[3] = pack_pair(c->r, c->s);
    w[4] = pack_pair(c->out_h, c->out_w);
    w[5] = pack_four(c->stride_h, c->stride_w, c->pad_h, c->pad_w);
    w[6] = pack_four(c->dilation_h, c->dilation_w, c->d, c->t);
    return c->layout == WORK_NHWC ? FLAG_NHWC : 0;
}

static bool convolution_unpack(const uint64_t w[], uint64_t flags,
                               struct work *work)
{
    struct work_convolution *c = &work->convolution;

    *c = (struct work_convolution){
        .n = low_of(w[0]),
        .c = w[0] >> 32,
        .h = low_of(w[1]),
        .w = w[1] >> 32,
        .k = low_of(w[2]),
        .groups = w[2] >> 32,
        .r = low_of(w[3]),
        .s = w[3] >> 32,
        .out_h = low_of(w[4]),
        .out_w = w[4] >> 32,
        .stride_h = part_of(w[5], 0),
        .stride_w = part_of(w[5], 1),
        .pad_h = part_of(w[5], 2),
        .pad_w = part_of(w[5], 3),
        .dilation_h = part_of(w[6], 0),
        .dilation_w = part_of(w[6], 1),
        .d = part_of(w[6], 2),
        .t = part_of(w[6], 3),
        .layout = flags & FLAG_NHWC ? WORK_NHWC : WORK_NCHW,
    };
    if (!c->groups || !c->k || c->c < c->groups)
        return false;
    work_convolution_moves(c->d, work); /* as deep as its input */
    return work->elements > 0;
}

/* --- others --------------------------------------------------------------- */

static void recurrent_pack(const struct work *work, uint64_t w[])
{
    const struct work_recurrent *r = &work->recurrent;

    w[0] = pack_pair(r->tokens, r->steps);
    w[1] = pack_pair(r->input, r->hidden);
    w[2] = pack_pair(r->layers, r->directions);
    w[3] = pack_pair(r->gates, r->pass);
}

static bool recurrent_unpack(const uint64_t w[], struct work *work)
{
    work->recurrent = (struct work_recurrent){
        .tokens = low_of(w[0]),
        .steps = w[0] >> 32,
        .input = low_of(w[1]),
        .hidden = w[1] >> 32,
        .layers = low_of(w[2]),
        .directions = w[2] >> 32 == 2 ? 2 : 1,
        .gates = (uint32_t)(w[3] & 7),
        .pass = (enum work_pass)(w[3] >> 32 & 3),
    };
    if (!work->recurrent.tokens || !work->recurrent.steps ||
        !work->recurrent.layers)
        return false;
    work_recurrent_moves(work);
    return true;
}

static void bytes_pack(const struct work *work, uint64_t w[])
{
    w[0] = work->elements;
    w[1] = work->rows.rows;
    w[2] = work->rows.columns;
    w[3] = (uint64_t)work->read_bytes;
    w[4] = (uint64_t)work->written_bytes;
    w[5] = pack_pair(work->blocks, work->threads);
}

static bool bytes_unpack(const uint64_t w[], struct work *work)
{
    work->elements = w[0];
    work->rows = (struct work_rows){w[1], w[2], 1, 0};
    work->read_bytes = (double)w[3];
    work->written_bytes = (double)w[4];
    work->flops = (double)w[0];
    if (w[5]) {
        work->blocks = low_of(w[5]);
        work->threads = (uint32_t)(w[5] >> 32);
    }
    return w[0] > 0;
}

/* --- all ------------------------------------------------------------------ */

void work_pack(const struct work *work, uint64_t words[TRACE_LAUNCH_WORDS])
{
    uint64_t flags = work->is_part ? FLAG_PART : 0;

    switch (work->family) {
    case WORK_GEMM:
        flags |= gemm_pack(work, words);
        break;
    case WORK_ATTENTION_FORWARD:
    case WORK_ATTENTION_BACKWARD:
        flags |= attention_pack(work, words);
        break;
    case WORK_CONVOLUTION_FORWARD:
    case WORK_CONVOLUTION_DGRAD:
    case WORK_CONVOLUTION_WGRAD:
        flags |= convolution_pack(work, words);
        break;
    default:
        if (work->is_recurrent)
            recurrent_pack(work, words);
        else
            bytes_pack(work, words);
        flags |= work->is_recurrent ? FLAG_RECURRENT : 0;
    }
    uint64_t out = work->family == WORK_GEMM ? work->gemm.out_bytes : 0;
    words[7] = (uint64_t)work->family | (uint64_t)work->type << 8 |
               (uint64_t)(work->element_bytes & 255) << 16 |
               (uint64_t)work->rate << 24 | flags << 32 | (out & 255) << 48;
}

static bool shape_unpack(const uint64_t words[], uint64_t flags,
                         struct work *work)
{
    switch (work->family) {
    case WORK_GEMM:
        return gemm_unpack(words, flags, work);
    case WORK_ATTENTION_FORWARD:
    case WORK_ATTENTION_BACKWARD:
        return attention_unpack(words, flags, work);
    case WORK_CONVOLUTION_FORWARD:
    case WORK_CONVOLUTION_DGRAD:
    case WORK_CONVOLUTION_WGRAD:
        return convolution_unpack(words, flags, work);
    default:
        return flags & FLAG_RECURRENT ? recurrent_unpack(words, work)
                                      : bytes_unpack(words, work);
    }
}

bool work_unpack(const uint64_t words[TRACE_LAUNCH_WORDS], struct work *work)
{
    uint64_t head = words[7], flags = head >> 32 & UINT16_MAX;
    struct work made = *work;

    if ((head & 255) >= WORK_FAMILIES || (head >> 8 & 255) >= WORK_TYPES ||
        (head >> 24 & 255) >= WORK_RATES)
        return false;
    made.family = (enum work_family)(head & 255);
    made.type = (enum work_type)(head >> 8 & 255);
    made.element_bytes = (uint32_t)(head >> 16 & 255);
    made.rate = (uint8_t)(head >> 24 & 255);
    made.source = WORK_EXACT;
    made.is_part = flags & FLAG_PART;
    if (!made.element_bytes || !shape_unpack(words, flags, &made))
        return false;
    *work = made;
    return true;
}

bool work_words(const struct op *op, const char *name,
                uint64_t words[TRACE_LAUNCH_WORDS])
{
    struct work work, again = {.family = WORK_OTHER};

    for (unsigned i = 0; i < TRACE_LAUNCH_WORDS; i++)
        words[i] = 0;
    work_describe(op, name, &work);
    if (work.source != WORK_EXACT && work.source != WORK_RULE)
        return false;
    work_pack(&work, words);
    return work_unpack(words, &again);
}
