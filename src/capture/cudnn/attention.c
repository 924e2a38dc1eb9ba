/* SPDX-License-Identifier: Apache-2.0
 * Attention, found in an operation graph. cudnn_frontend either asks for it by
 * name (its "unified" node) or spells it out (CompositeSDPANode and
 * CompositeSDPABackwardNode, node/scaled_dot_product_flash_attention.h): two
 * products forward, Q K^T and P V; five backward. K and V of backward, and K of
 * forward, come transposed. */
#include "capture/cudnn/plan.h"

/* What cuDNN 9.21 and later have for the mask and the softmax, by the numbers
 * that torch 2.15 passes (cudnn_frontend, node/diagonal_band_mask.h and
 * node/softmax.h); the headers here are older. */
#define OPERATION_DIAGONAL_BAND_MASK ((cudnnBackendDescriptorType_t)44)
#define ATTR_MASK_COMPARISON         ((cudnnBackendAttributeName_t)3007)
#define OPERATION_SOFTMAX            ((cudnnBackendDescriptorType_t)45)
#define ATTR_SOFTMAX_STATS           ((cudnnBackendAttributeName_t)3102)
/* What the unified forward node has inside: what becomes of the scores, a graph
 * or one operation, and the softmax. */
#define ATTR_SDPA_FWD_SCORES  ((cudnnBackendAttributeName_t)2811)
#define ATTR_SDPA_FWD_SOFTMAX ((cudnnBackendAttributeName_t)2814)

struct attention {
    bool backward;
    struct shape q, k, v, o;
    bool causal, window, padding, bias, stats;
    double dropout;
};

static struct shape transpose_shape(struct shape shape)
{
    int last = shape.count - 1;

    if (last < 1)
        return shape;
    int64_t dim = shape.dims[last], stride = shape.strides[last];
    shape.dims[last] = shape.dims[last - 1];
    shape.strides[last] = shape.strides[last - 1];
    shape.dims[last - 1] = dim;
    shape.strides[last - 1] = stride;
    return shape;
}

/* Product INDEX in the graph; with DIRECT, of two tensors in memory only. */
static const struct descriptor *product_find(const struct descriptor *graph,
                                             int index, bool direct)
{
    const struct descriptor *op;

    for (int64_t i = 0; (op = graph_operation(graph, i)); i++) {
        if (op->type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
            continue;
        if (direct && (tensor_is_virtual(descriptor_child(
                           op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, 0)) ||
                       tensor_is_virtual(descriptor_child(
                           op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0))))
            continue;
        if (!index--)
            return op;
    }
    return NULL;
}

static struct shape operation_part(const struct descriptor *operation,
                                   cudnnBackendAttributeName_t name)
{
    return shape_of(descriptor_child(operation, name, 0));
}

static bool read_forward(const struct descriptor *graph, struct attention *a)
{
    const struct descriptor *first = product_find(graph, 0, false);
    const struct descriptor *second = product_find(graph, 1, false);

    if (!second || product_find(graph, 2, false))
        return false;
    a->q = operation_part(first, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    a->k = transpose_shape(
        operation_part(first, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    a->v = operation_part(second, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    a->o = operation_part(second, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    return true;
}

/* Of the five, Q K^T and dO V^T are the ones that read memory only. */
static bool read_backward(const struct descriptor *graph, struct attention *a)
{
    const struct descriptor *q_k = product_find(graph, 0, true);
    const struct descriptor *o_v = product_find(graph, 1, true);

    if (!product_find(graph, 4, false) || !o_v)
        return false;
    a->backward = true;
    a->q = operation_part(q_k, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    a->k =
        transpose_shape(operation_part(q_k, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    a->o = operation_part(o_v, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    a->v =
        transpose_shape(operation_part(o_v, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    return true;
}

static bool read_unified(const struct descriptor *op, struct attention *a)
{
    if (!op)
        return false;
    if (op->type == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) {
        a->q = operation_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
        a->k = operation_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
        a->v = operation_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
        a->o = operation_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
        a->stats =
            descriptor_child(op, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, 0);
        return true;
    }
    if (op->type != CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR)
        return false;
    a->backward = true;
    a->q = operation_part(op, CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC);
    a->k = operation_part(op, CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC);
    a->v = operation_part(op, CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC);
    a->o = operation_part(op, CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC);
    return true;
}

/* An added tensor in memory of more than one element is a bias. */
static bool adds_bias(const struct descriptor *op)
{
    const struct descriptor *b =
        descriptor_child(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
    struct shape shape = shape_of(b);

    return !tensor_is_virtual(b) &&
           !descriptor_number(b, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) &&
           shape_elements(&shape) > 1;
}

/* The masks compare row and column numbers (cudnn_frontend,
 * utils/attn_score_modifiers.h): row >= column is causal, column > row - width
 * a window. */
static void read_comparison(int64_t mode, struct attention *a)
{
    if (mode == CUDNN_POINTWISE_CMP_GE)
        a->causal = true;
    if (mode == CUDNN_POINTWISE_CMP_GT)
        a->window = true;
}

/* The conjunction of two comparisons is padding. */
static void read_pointwise(const struct descriptor *op, struct attention *a)
{
    const struct descriptor *pointwise =
        descriptor_child(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
    const struct descriptor *y =
        descriptor_child(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);

    int64_t mode = descriptor_number(pointwise, CUDNN_ATTR_POINTWISE_MODE, -1);

    read_comparison(mode, a);
    if (mode == CUDNN_POINTWISE_LOGICAL_AND)
        a->padding = true;
    if (mode == CUDNN_POINTWISE_ADD && adds_bias(op))
        a->bias = true;
    if (y && !tensor_is_virtual(y) && !a->backward)
        a->stats = true;
}

static void read_modifier(const struct descriptor *op, struct attention *a)
{
    const struct descriptor *rng =
        descriptor_child(op, CUDNN_ATTR_OPERATION_RNG_DESC, 0);

    if (op->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        read_pointwise(op, a);
    if (descriptor_child(op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
                         0))
        a->padding = true; /* every sequence has a length of its own */
    if (op->type == OPERATION_DIAGONAL_BAND_MASK)
        read_comparison(descriptor_number(op, ATTR_MASK_COMPARISON, -1), a);
    if (op->type == OPERATION_SOFTMAX &&
        !tensor_is_virtual(descriptor_child(op, ATTR_SOFTMAX_STATS, 0)))
        a->stats = true;
    if (rng)
        a->dropout = 1 - descriptor_real(
                             rng, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, 1);
}

/* INNER is a graph, an operation, or NULL. */
static void read_inner(const struct descriptor *inner, struct attention *a)
{
    const struct descriptor *op;

    if (!inner)
        return;
    if (inner->type != CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
        read_modifier(inner, a);
        return;
    }
    for (int64_t i = 0; (op = graph_operation(inner, i)); i++)
        read_modifier(op, a);
}

static void read_modifiers(const struct descriptor *graph, struct attention *a)
{
    const struct descriptor *op;

    for (int64_t i = 0; (op = graph_operation(graph, i)); i++) {
        read_modifier(op, a);
        if (op->type != CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR)
            continue;
        read_inner(descriptor_child(op, ATTR_SDPA_FWD_SCORES, 0), a);
        read_inner(descriptor_child(op, ATTR_SDPA_FWD_SOFTMAX, 0), a);
    }
}

static void attention_describe(const struct attention *a, struct text *text)
{
    shape_describe(text, "q", &a->q);
    shape_describe(text, "k", &a->k);
    shape_describe(text, "v", &a->v);
    shape_describe(text, "o", &a->o);
    text_add(text, "causal=%d window=%d padding=%d bias=%d dropout=%g stats=%d",
             a->causal, a->window, a->padding, a->bias, a->dropout, a->stats);
}

/* Does GRAPH sum gradients of keys or values over heads that it keeps in no
 * tensor of the program's? Older frontends keep them in one: in scratch. */
static bool sums_hidden_heads(const struct descriptor *graph)
{
    const struct descriptor *op;

    for (int64_t i = 0; (op = graph_operation(graph, i)); i++) {
        const struct descriptor *all =
            descriptor_child(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 0);
        const struct descriptor *sum =
            descriptor_child(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 0);

        if (op->type == CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR)
            return true;
        if (op->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR &&
            tensor_is_virtual(all) && !tensor_is_virtual(sum) &&
            shape_of(all).dims[1] != shape_of(sum).dims[1])
            return true;
    }
    return false;
}

/* The elements of the gradient of KEYS, keys or values, for each of A's query
 * heads. */
static uint64_t full_heads(const struct attention *a, const struct shape *keys)
{
    uint64_t heads = keys->count > 1 ? (uint64_t)keys->dims[1] : 0;

    return heads ? shape_elements(keys) / heads * (uint64_t)a->q.dims[1] : 0;
}

/* Measured on an H200 with cuDNN 9.19, bf16 and fp16, in 19 jobs. The larger
 * parts of backward, 4 bytes for each value of Q and for each row, are tensors
 * of the frontend's and scratch here. */
static uint64_t attention_workspace(const struct descriptor *graph,
                                    const struct attention *a)
{
    uint64_t bytes = 256;

    if (a->backward && a->k.count > 1 && a->k.dims[1] < a->q.dims[1] &&
        sums_hidden_heads(graph))
        bytes += (full_heads(a, &a->k) + full_heads(a, &a->v)) *
                 cudnn_type_bytes(a->q.type);
    return bytes;
}

bool attention_read(const struct descriptor *graph, struct plan *plan)
{
    struct attention a = {0};

    if (!read_unified(graph_operation(graph, 0), &a) &&
        !read_forward(graph, &a) && !read_backward(graph, &a))
        return false;
    read_modifiers(graph, &a);
    plan->kind = PLAN_ATTENTION;
    plan->name = a.backward ? NAME_OF("backward") : NAME_OF("forward");
    plan->operation = a.backward ? ATTENTION_BACKWARD : ATTENTION_FORWARD;
    plan->type = a.q.type;
    plan->compute = CUDNN_DATA_FLOAT;
    plan->workspace_bytes = attention_workspace(graph, &a);
    attention_describe(&a, &plan->detail);
    return true;
}
