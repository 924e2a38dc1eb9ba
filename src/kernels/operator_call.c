/* SPDX-License-Identifier: Apache-2.0
 * Operators that call a library, or a kernel of no known arguments: the work of
 * the call, by its tensors. */
#include "kernels/operator_internal.h"

#include <string.h>

#include "common/base/text_begins.h"

/* The kernel that is asked about. */
struct asked {
    const char *kernel;
    const struct operator_progress *progress; /* before it */
};

/* --- products ------------------------------------------------------------- */

/* Where the operands are among an operator's arguments. */
static const struct product {
    const char *name;
    uint8_t first;
    bool batched;
} products[] = {
    {"aten::mm", 0, false},       {"aten::addmm", 1, false},
    {"aten::addmm_", 1, false},   {"aten::_addmm_activation", 1, false},
    {"aten::bmm", 0, true},       {"aten::baddbmm", 1, true},
    {"aten::baddbmm_", 1, true},  {"aten::_scaled_mm", 0, false},
    {"aten::linear", 0, false},   {"aten::addmv_", 1, false},
    {"aten::mv", 0, false},       {"aten::dot", 0, false},
};

static bool has_word(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

static bool is_tf32(const char *kernel)
{
    return has_word(kernel, "tf32") || has_word(kernel, "1688");
}

/* fp32 operands: a kernel's name says whether tensor cores take them. */
static enum work_type arithmetic_of(uint8_t type, const struct asked *asked)
{
    if (type == WORK_FP32 && (asked->progress->names_tf32 ||
                              is_tf32(asked->kernel)))
        return WORK_TF32;
    return (enum work_type)type;
}

/* Does the matrix A lie with its columns one after the other? Its rows are
 * LEADING elements apart, or its columns. False where the strides say
 * neither. */
static bool layout_of(const struct operator_argument *a, bool *transposed,
                      uint64_t *leading)
{
    if (!a->has_strides || a->dimensions < 2)
        return false;
    uint64_t rows = a->strides[a->dimensions - 2];
    uint64_t columns = a->strides[a->dimensions - 1];
    if (rows != 1 && columns != 1)
        return false;
    *transposed = rows == 1 && columns != 1;
    *leading = *transposed ? columns : rows;
    return true;
}

static bool gemm_extents(const struct operator_argument *a, bool batched,
                         struct work_gemm *g)
{
    const struct operator_argument *b = a + 1;
    unsigned at = batched;

    if (a->dimensions != 2 + at || b->dimensions < 1 + at)
        return false;
    g->m = a->sizes[at];
    g->k = a->sizes[at + 1];
    g->n = b->dimensions > 1 + at ? b->sizes[at + 1] : 1;
    g->batch = batched ? a->sizes[0] : 1;
    return b->sizes[at] == g->k;
}

/* A vector with a vector. */
static bool dot_extents(const struct operator_argument *a, struct work_gemm *g)
{
    g->m = g->n = g->batch = 1;
    g->k = a->dimensions == 1 ? a->sizes[0] : 0;
    return g->k > 0;
}

/* BLAS's letters in the name of a kernel of cuBLAS's: of the column-major call,
 * whose first operand is our second. "..._tn_align8", "nvjet_..._TNT". */
static void layout_by_name(const char *kernel, struct work_gemm *g)
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

static void gemm_layout(const struct operator_argument *a, const char *kernel,
                        struct work_gemm *g)
{
    uint64_t lda = 0, ldb = 0;

    if (!layout_of(a, &g->transpose_a, &lda) ||
        !layout_of(a + 1, &g->transpose_b, &ldb)) {
        g->transpose_a = g->transpose_b = false;
        layout_by_name(kernel, g);
        return;
    }
    bool packed_a = lda == (g->transpose_a ? g->m : g->k);
    bool packed_b = ldb == (g->transpose_b ? g->k : g->n);
    if (packed_a && packed_b)
        return;
    g->lda = lda;
    g->ldb = ldb;
    g->ldc = g->n;
}

static bool describe_product(const struct operator_call *call,
                             const struct product *p,
                             const struct asked *asked, struct work *work)
{
    const struct operator_argument *a = &call->arguments[p->first];
    struct work_gemm *g = &work->gemm;

    *g = (struct work_gemm){.batch = 1};
    if (call->count < p->first + 2u || !a->element_bytes ||
        !(gemm_extents(a, p->batched, g) || dot_extents(a, g)) || !g->n)
        return false;
    gemm_layout(a, asked->kernel, g);
    work->family = WORK_GEMM;
    work->type = arithmetic_of(a->type, asked);
    work->element_bytes = a->element_bytes;
    g->out_bytes = a->type == WORK_FP8 ? 2 : a->element_bytes;
    return g->m && g->k;
}

/* --- convolutions --------------------------------------------------------- */

/* Where the operands and the numbers are among the arguments of an operator. */
static const struct convolution {
    const char *name;
    uint8_t in, filter, out; /* tensors */
    uint8_t pad, stride, dilation, groups;
    uint8_t mask; /* which gradients are wanted */
    bool backward;
} convolutions[] = {
    {"aten::cudnn_convolution", 0, 1, NONE, 2, 3, 4, 5, NONE, false},
    {"aten::cudnn_convolution_relu", 0, 1, NONE, 4, 3, 5, 6, NONE, false},
    {"aten::_convolution", 0, 1, NONE, 4, 3, 5, 8, NONE, false},
    {"aten::_conv_depthwise2d", 0, 1, NONE, 5, 4, 6, NONE, NONE, false},
    {"aten::_slow_conv2d_forward", 0, 1, NONE, 5, 4, NONE, NONE, NONE, false},
    {"aten::convolution_backward", 1, 2, 0, 5, 4, 6, 9, 10, true},
};

static uint64_t out_extent(uint64_t in, uint64_t filter, uint64_t stride,
                           uint64_t pad, uint64_t dilation)
{
    uint64_t reach = dilation * (filter - 1) + 1, all = in + 2 * pad;

    return stride && all >= reach ? (all - reach) / stride + 1 : 0;
}

/* A filter of 1 x 1 in NCHW has its channels side by side, too: its strides of
 * rows and columns tell it apart. */
static bool is_nhwc(const struct operator_argument *a)
{
    return a->has_strides && a->dimensions >= 4 && a->strides[1] == 1 &&
           a->sizes[1] > 1 && a->strides[a->dimensions - 1u] >= a->sizes[1];
}

static void extents_set(const struct operator_call *call,
                        const struct convolution *c, struct work_convolution *w)
{
    const struct operator_argument *in = &call->arguments[c->in];
    const struct operator_argument *filter = &call->arguments[c->filter];
    unsigned d = in->dimensions, first = d > 4, flat = d == 3;

    *w = (struct work_convolution){
        .n = in->sizes[0],
        .c = in->sizes[1],
        .k = filter->sizes[0],
        .d = d > 4 ? in->sizes[2] : 1,
        .t = d > 4 ? filter->sizes[2] : 1,
        .h = flat ? 1 : in->sizes[d - 2],
        .w = in->sizes[d - 1],
        .r = flat ? 1 : filter->sizes[d - 2],
        .s = filter->sizes[d - 1],
        .stride_h = flat ? 1 : operator_number(call, c->stride, first, 1),
        .stride_w = operator_number(call, c->stride, first + !flat, 1),
        .pad_h = flat ? 0 : operator_number(call, c->pad, first, 0),
        .pad_w = operator_number(call, c->pad, first + !flat, 0),
        .dilation_h = flat ? 1 : operator_number(call, c->dilation, first, 1),
        .dilation_w = operator_number(call, c->dilation, first + !flat, 1),
        .groups = c->groups == NONE ? in->sizes[1] / filter->sizes[1]
                                    : operator_number(call, c->groups, 0, 1),
        .layout = is_nhwc(in) || is_nhwc(filter) ? WORK_NHWC : WORK_NCHW,
    };
    w->out_h = out_extent(w->h, w->r, w->stride_h, w->pad_h, w->dilation_h);
    w->out_w = out_extent(w->w, w->s, w->stride_w, w->pad_w, w->dilation_w);
}

/* Does the kernel NAME compute a filter's gradient? */
static bool is_filter_gradient(const char *name)
{
    return has_word(name, "wgrad") || has_word(name, "Wgrad") ||
           has_word(name, "conv2d_grad_weight");
}

/* cuDNN's transposes, before the kernel that computes and behind it. */
static bool is_transpose_before(const char *name)
{
    return has_word(name, "nchwToNhwc");
}

static bool is_transpose_behind(const char *name)
{
    return has_word(name, "nhwcToNchw");
}

/* The pass of a backward's next kernel, as PyTorch calls them: the input's
 * gradient, then the filter's. That begins with its transposes; of GROUPS each
 * has its own. Where no kernel's name says which is the filter's, the second
 * one that computes is. */
static enum operator_pass
backward_pass(const struct operator_call *call, const struct convolution *c,
              const struct asked *asked, uint64_t groups)
{
    const struct operator_progress *progress = asked->progress;
    bool input = operator_number(call, c->mask, 0, 1);
    bool filter = operator_number(call, c->mask, 1, 1);

    if (!input || is_filter_gradient(asked->kernel) ||
        progress->done[OPERATOR_PASS_SECOND])
        return OPERATOR_PASS_SECOND;
    bool next = progress->names_filter
                    ? is_transpose_before(asked->kernel) && groups == 1
                    : !is_transpose_behind(asked->kernel);
    return filter && progress->computed && next ? OPERATOR_PASS_SECOND
                                                : OPERATOR_PASS_FIRST;
}

static bool describe_convolution(const struct operator_call *call,
                                 const struct convolution *c,
                                 const struct asked *asked, struct work *work,
                                 enum operator_pass *pass)
{
    const struct operator_argument *in = &call->arguments[c->in];
    const struct operator_argument *filter = &call->arguments[c->filter];

    if (call->count <= c->filter || in->dimensions < 3 ||
        in->dimensions > 5 || filter->dimensions != in->dimensions ||
        !call->arguments[c->stride].number_count || !filter->sizes[1])
        return false;
    extents_set(call, c, &work->convolution);
    if (c->backward)
        *pass = backward_pass(call, c, asked, work->convolution.groups);
    work->family = !c->backward ? WORK_CONVOLUTION_FORWARD
                   : *pass == OPERATOR_PASS_FIRST ? WORK_CONVOLUTION_DGRAD
                                                  : WORK_CONVOLUTION_WGRAD;
    work->type = arithmetic_of(in->type, asked);
    work->element_bytes = in->element_bytes;
    return work->convolution.out_h && work->convolution.out_w &&
           work->convolution.groups;
}

/* --- attention ------------------------------------------------------------ */

/* The queries, keys and values are arguments one after the other; DIMS says
 * where each has its heads and its length, from the end. */
static const struct attention {
    const char *name;
    uint8_t first, causal, dropout, bias; /* arguments */
    bool tokens_first;                    /* batch, tokens, heads, size */
    bool backward;
    enum work_attention kernel;
} attentions[] = {
    {"aten::_cudnn_attention_forward", 0, 10, 9, 3, false, false,
     WORK_ATTENTION_CUDNN},
    {"aten::_cudnn_attention_backward", 1, 14, 13, 8, false, true,
     WORK_ATTENTION_CUDNN},
    {"aten::_scaled_dot_product_cudnn_attention", 0, 6, 5, 3, false, false,
     WORK_ATTENTION_CUDNN},
    {"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, 13, 8, false,
     true, WORK_ATTENTION_CUDNN},
    {"aten::_flash_attention_forward", 0, 8, 7, NONE, true, false,
     WORK_ATTENTION_FLASH2},
    {"aten::_flash_attention_backward", 1, 11, 10, NONE, true, true,
     WORK_ATTENTION_FLASH2},
    {"aten::_efficient_attention_forward", 0, 10, 8, 3, true, false,
     WORK_ATTENTION_EFFICIENT},
    {"aten::_efficient_attention_backward", 1, 14, 11, 4, true, true,
     WORK_ATTENTION_EFFICIENT},
    {"flash_attn::_flash_attn_forward", 0, 5, 3, NONE, true, false,
     WORK_ATTENTION_FLASH2},
    {"flash_attn::_flash_attn_backward", 1, 11, 9, NONE, true, true,
     WORK_ATTENTION_FLASH2},
    {"flash_attn_3::fwd", 0, NONE, NONE, NONE, true, false,
     WORK_ATTENTION_FLASH3},
    {"flash_attn_3::bwd", 1, NONE, NONE, NONE, true, true,
     WORK_ATTENTION_FLASH3},
};

/* Sequences of different lengths are one behind the other: T, heads, size. */
static bool attention_extents(const struct operator_call *call,
                              const struct attention *at,
                              struct work_attention_shape *shape)
{
    const struct operator_argument *q = &call->arguments[at->first];
    const struct operator_argument *k = q + 1, *v = q + 2;
    unsigned d = q->dimensions;

    if (call->count < at->first + 3u || d < 3 || d > 4 || k->dimensions != d ||
        v->dimensions != d || !q->element_bytes)
        return false;
    unsigned heads = d - (at->tokens_first ? 2 : 3);
    unsigned tokens = d - (at->tokens_first ? 3 : 2);
    *shape = (struct work_attention_shape){
        .batch = d == 4 ? q->sizes[0] : 1,
        .heads = q->sizes[heads],
        .kv_heads = k->sizes[heads],
        .queries = q->sizes[tokens],
        .keys = k->sizes[tokens],
        .head_size = q->sizes[d - 1],
        .value_size = v->sizes[d - 1],
        .kernel = at->kernel,
    };
    return shape->kv_heads > 0;
}

static bool describe_attention(const struct operator_call *call,
                               const struct attention *at, struct work *work)
{
    struct work_attention_shape *shape = &work->attention;

    if (!attention_extents(call, at, shape))
        return false;
    shape->causal =
        at->causal == NONE || operator_number(call, at->causal, 0, 0);
    /* a probability: only that it is not a plain 0 is of interest */
    shape->dropout = at->dropout != NONE && at->dropout < call->count &&
                     call->arguments[at->dropout].nonzero;
    shape->bias = at->bias != NONE && at->bias < call->count &&
                  call->arguments[at->bias].dimensions > 0;
    work->family =
        at->backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION_FORWARD;
    work->type = (enum work_type)call->arguments[at->first].type;
    work->element_bytes = call->arguments[at->first].element_bytes;
    return true;
}

/* --- cuDNN's norms and recurrent networks --------------------------------- */

#define CHANNEL_THREADS 512 /* of the block that cuDNN has for each channel */

/* Passes over the input, as cuDNN's call in a recording has them. */
static const struct norm {
    const char *name;
    enum work_family family;
    enum work_rate rate;
    uint8_t read, written;
} norms[] = {
    {"aten::cudnn_batch_norm", WORK_NORM_FORWARD, WORK_RATE_CHANNEL_FORWARD, 2,
     1},
    {"aten::cudnn_batch_norm_backward", WORK_NORM_BACKWARD,
     WORK_RATE_CHANNEL_BACKWARD, 4, 1},
};

static bool describe_norm(const struct operator_call *call, struct work *work)
{
    const struct operator_argument *x = &call->arguments[0];

    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        if (strcmp(norms[i].name, call->name) || x->dimensions < 2)
            continue;
        double bytes = x->elements * x->element_bytes;
        work->family = norms[i].family;
        work->rate = (uint8_t)norms[i].rate;
        work->element_bytes = 4;
        work->read_bytes = norms[i].read * bytes;
        work->written_bytes = norms[i].written * bytes;
        work->elements = (uint64_t)(work->written_bytes / 4);
        work->blocks = x->sizes[1];
        work->threads = CHANNEL_THREADS;
        return true;
    }
    return false;
}

/* cudnnRNNMode_t: two of plain networks, LSTM, GRU. */
static uint32_t gates_of(uint64_t mode)
{
    return mode == 2 ? 4 : mode == 3 ? 3 : 1;
}

/* aten::_cudnn_rnn(input, weights, ..., mode, hidden, projection, layers, batch
 * first, dropout, train, bidirectional, ...); the backward has four gradients
 * before the mode. */
static bool describe_recurrent(const struct operator_call *call,
                               const struct asked *asked, struct work *work,
                               enum operator_pass *pass)
{
    bool backward = !strcmp(call->name, "aten::_cudnn_rnn_backward");
    const struct operator_argument *x = &call->arguments[0];
    uint8_t at = backward ? 10 : 6;

    if ((!backward && strcmp(call->name, "aten::_cudnn_rnn")) ||
        x->dimensions != 3 || call->count < at + 8u)
        return false;
    bool batch_first = operator_number(call, at + 4, 0, 0);
    work->family = WORK_OTHER;
    work->is_recurrent = true;
    work->type = arithmetic_of(x->type, asked);
    work->element_bytes = x->element_bytes;
    if (backward && asked->progress->done[OPERATOR_PASS_FIRST])
        *pass = OPERATOR_PASS_SECOND;
    work->recurrent = (struct work_recurrent){
        .tokens = x->sizes[0] * x->sizes[1],
        .steps = x->sizes[batch_first],
        .input = x->sizes[2],
        .hidden = operator_number(call, at + 1, 0, 0),
        .layers = operator_number(call, at + 3, 0, 1),
        .directions = operator_number(call, at + 7, 0, 0) ? 2 : 1,
        .gates = gates_of(operator_number(call, at, 0, 2)),
        .pass = !backward                       ? WORK_PASS_FORWARD
                : *pass == OPERATOR_PASS_SECOND ? WORK_PASS_WEIGHTS
                                                : WORK_PASS_DATA,
    };
    return work->recurrent.hidden > 0;
}

/* --- kernels that a compiler made ----------------------------------------- */

/* Triton's kernels have all their tensors as arguments: each counts once, the
 * largest as what is written. */
static bool describe_compiled(const struct operator_call *call,
                              const char *kernel, struct work *work)
{
    const struct operator_argument *most = NULL;
    double bytes = 0;

    if (!text_begins(kernel, "triton_"))
        return false;
    for (unsigned i = 0; i < call->count; i++) {
        const struct operator_argument *a = &call->arguments[i];
        bytes += a->elements * a->element_bytes;
        if (a->dimensions && (!most || a->elements > most->elements))
            most = a;
    }
    if (!most)
        return false;
    work->family = WORK_ELEMENTWISE;
    work->type = (enum work_type)most->type;
    work->element_bytes = most->element_bytes;
    work->elements = (uint64_t)most->elements;
    work->written_bytes = most->elements * most->element_bytes;
    work->read_bytes = bytes - work->written_bytes;
    return true;
}

/* --- all ------------------------------------------------------------------ */

static bool describe_call(const struct operator_call *call,
                          const struct asked *asked, struct work *work,
                          enum operator_pass *pass)
{
    const struct product *p = OPERATOR_ROW(products, call->name);
    const struct convolution *c = OPERATOR_ROW(convolutions, call->name);
    const struct attention *a = OPERATOR_ROW(attentions, call->name);

    if (p)
        return describe_product(call, p, asked, work);
    if (c)
        return describe_convolution(call, c, asked, work, pass);
    if (a)
        return describe_attention(call, a, work);
    return describe_norm(call, work) ||
           describe_recurrent(call, asked, work, pass) ||
           describe_compiled(call, asked->kernel, work);
}

void operator_note(struct operator_progress *progress, const char *kernel)
{
    /* a sum behind a product, which has no name of its own */
    progress->names_filter |=
        is_filter_gradient(kernel) && !has_word(kernel, "reduce_wgrad");
    progress->names_tf32 |= is_tf32(kernel);
}

bool operator_call_work(const struct operator_call *call,
                        struct operator_progress *progress,
                        const char *kernel, struct work *work)
{
    struct work made = {.family = WORK_OTHER, .source = WORK_EXACT};
    enum operator_pass pass = OPERATOR_PASS_FIRST;

    const struct asked asked = {kernel, progress};

    if (!describe_call(call, &asked, &made, &pass))
        return false;
    made.is_part = progress->done[pass];
    progress->done[pass] = true;
    progress->computed |=
        !is_transpose_before(kernel) && !is_transpose_behind(kernel);
    *work = made;
    return true;
}
