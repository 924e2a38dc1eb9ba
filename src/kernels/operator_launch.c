/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's own kernels: the words that their arguments would have, by the
 * tensors of the operator. */
#include "kernels/operator_internal.h"

#include <math.h>
#include <string.h>

#define FOREACH_CHUNK  65536 /* elements of a block: kChunkSize */
#define THREAD_LOADS   4     /* elements of a thread where no name says it */
#define THREAD_MOST    32    /* elements that a thread has at most */

static uint64_t low_of(uint64_t word)
{
    return word & UINT32_MAX;
}

static uint64_t grid_of(const struct trace_launch *l)
{
    return low_of(l->grid_x_y);
}

static uint64_t block_of(const struct trace_launch *l)
{
    return l->grid_z_block_x >> 32;
}

static void rule_set(struct trace_launch *l, enum trace_rule rule)
{
    l->shared_bytes_rule = trace_pack((uint32_t)l->shared_bytes_rule, rule);
}

/* Can ELEMENTS be those of this grid, whose last block has one at least? */
static bool fits_grid(const struct trace_launch *l, double elements)
{
    double blocks = (double)grid_of(l), threads = (double)block_of(l);

    return elements > 0 && elements <= blocks * threads * THREAD_MOST &&
           elements > (blocks - 1) * threads;
}

/* The share of CALL's elements that one launch has: TensorIterator halves its
 * tensors until none reaches 2 GiB (with_32bit_indexing). */
static double launch_share(const struct operator_call *call)
{
    double most = 0, share = 1;

    for (unsigned i = 0; i < call->count; i++) {
        const struct operator_argument *a = &call->arguments[i];
        if (a->dimensions && a->elements * a->element_bytes > most)
            most = a->elements * a->element_bytes;
    }
    while (most * share > INT32_MAX)
        share /= 2;
    return share;
}

/* The elements that a kernel of a loop has: those of all tensors together, of
 * one that its grid can have, or as many as the grid has at most. */
static double loop_elements(const struct operator_call *call,
                            const struct work_kernel *kernel,
                            const struct trace_launch *l)
{
    double all = ceil(operator_elements(call) * launch_share(call));
    int32_t loads = kernel->numbers[0];

    if (fits_grid(l, all))
        return all;
    for (unsigned i = 0; i < call->count; i++)
        if (fits_grid(l, call->arguments[i].elements))
            return call->arguments[i].elements;
    return (double)grid_of(l) * (double)block_of(l) *
           (loads > 0 && loads <= 16 ? loads : THREAD_LOADS);
}

static bool in_place(const struct operator_call *call)
{
    size_t length = strlen(call->name);

    return length && call->name[length - 1] == '_';
}

static bool is_copy(const struct operator_call *call)
{
    return !strcmp(call->name, "aten::copy_");
}

/* The I-th tensor that a kernel reads; NULL: there is none. A copy's first
 * argument is its result. */
static const struct operator_argument *
input_at(const struct operator_call *call, unsigned i)
{
    for (unsigned a = is_copy(call); a < call->count; a++)
        if (call->arguments[a].element_bytes && !i--)
            return &call->arguments[a];
    return NULL;
}

/* A result has the type of what it replaces, or the widest floating one. */
static uint32_t result_bytes(const struct operator_call *call)
{
    uint32_t most = 0, any = 0;

    if (call->count && (in_place(call) || is_copy(call)))
        return call->arguments[0].element_bytes;
    for (unsigned i = 0; i < call->count; i++) {
        const struct operator_argument *a = &call->arguments[i];
        if (!a->dimensions)
            continue;
        any = a->element_bytes > any ? a->element_bytes : any;
        if (a->type != WORK_INTEGER && a->element_bytes > most)
            most = a->element_bytes;
    }
    return most ? most : any;
}

static bool kernel_casts(const struct work_kernel *kernel)
{
    return kernel->arguments == KERNEL_ARGUMENTS_CASTS;
}

/* TRACE_RULE_ELEMENTWISE. */
static bool elementwise_words(const struct operator_call *call,
                              const struct work_kernel *kernel,
                              struct trace_launch *l)
{
    l->a = (uint64_t)loop_elements(call, kernel, l);
    l->b = kernel->operands;
    if (kernel_casts(kernel) || !kernel->bytes[0]) {
        l->c = result_bytes(call);
        for (unsigned i = 0; i + 1 < kernel->operands && i < 7; i++) {
            const struct operator_argument *in = input_at(call, i);
            if (in)
                l->c |= (uint64_t)in->element_bytes << 8 * (i + 1);
        }
    }
    rule_set(l, TRACE_RULE_ELEMENTWISE);
    return l->a > 0;
}

/* How SHARE of a tensor is walked: its own elements once, those that are
 * repeated not. */
static uint64_t strided_of(const struct operator_argument *a, double share)
{
    struct trace_strided s = {.elements = 1, .least_bytes = 255};

    for (unsigned i = 0; i < a->dimensions; i++) {
        uint64_t stride = a->has_strides ? a->strides[i] : 1;
        uint64_t bytes = stride * a->element_bytes;
        if (!stride || a->sizes[i] == 1)
            continue;
        s.elements *= a->sizes[i];
        if (bytes < s.least_bytes)
            s.least_bytes = (uint32_t)bytes;
        if (i + 1 == a->dimensions)
            s.inner_bytes = (uint32_t)(bytes < 65535 ? bytes : 65535);
    }
    if (s.least_bytes == 255 || s.least_bytes < a->element_bytes)
        s.least_bytes = a->element_bytes;
    s.elements = (uint64_t)ceil((double)s.elements * share);
    return trace_strided_pack(&s);
}

/* TRACE_RULE_STRIDED. */
static bool strided_words(const struct operator_call *call,
                          const struct work_kernel *kernel,
                          struct trace_launch *l)
{
    const struct operator_argument *in;
    double share = launch_share(call);
    uint32_t bytes = result_bytes(call);
    uint64_t *words = &l->c;
    unsigned count = 0;

    l->a = (uint64_t)loop_elements(call, kernel, l);
    if (call->count && (is_copy(call) || in_place(call)) &&
        call->arguments[0].dimensions) {
        words[count++] = strided_of(&call->arguments[0], share);
    } else {
        const struct trace_strided out = {l->a, bytes, bytes};
        words[count++] = trace_strided_pack(&out);
    }
    for (unsigned i = 0; (in = input_at(call, i)) && count < 6; i++)
        if (in->dimensions && in->elements * share <= 2 * (double)l->a)
            words[count++] = strided_of(in, share);
    l->b = count;
    rule_set(l, TRACE_RULE_STRIDED);
    return l->a > 0 && bytes;
}

/* TRACE_RULE_FOREACH: the elements of the first list where the profile has
 * them, else those of whole chunks. Who adds products in place is an optimizer,
 * which squares its gradient: one list twice. */
static bool list_words(const struct operator_call *call,
                       struct trace_launch *l)
{
    double chunks = (double)grid_of(l) * FOREACH_CHUNK, most = 0;

    for (unsigned i = 0; i < call->count && most <= 0; i++)
        most = call->arguments[i].dimensions ? 0 : call->arguments[i].elements;
    l->a = (uint64_t)(most > 0 && most < chunks ? most : chunks);
    l->e = !strcmp(call->name, "aten::_foreach_addcmul_");
    rule_set(l, TRACE_RULE_FOREACH);
    return l->a > 0;
}

/* --- reductions ----------------------------------------------------------- */

/* The dimensions that CALL reduces, as bits; 0: all. */
static uint32_t reduced_of(const struct operator_call *call, unsigned d)
{
    uint32_t bits = 0;

    if (!strcmp(call->name, "aten::convolution_backward"))
        return ((1u << d) - 1) & ~2u; /* the bias' gradient */
    for (unsigned i = 1; i < call->count && !bits; i++) {
        const struct operator_argument *a = &call->arguments[i];
        bool flag = !a->number_count || a->dimensions;
        for (unsigned k = 0; !flag && k < a->number_count; k++) {
            int64_t at = a->numbers[k] < 0 ? a->numbers[k] + d : a->numbers[k];
            if (at >= 0 && at < (int64_t)d)
                bits |= 1u << at;
        }
        if (bits || strcmp(call->name, "aten::norm"))
            break;
    }
    return bits;
}

/* TRACE_RULE_REDUCTION. */
static bool reduce_words(const struct operator_call *call,
                         struct trace_launch *l)
{
    const struct operator_argument *in = &call->arguments[0];
    uint64_t inputs = 1, outputs = 1, apart = UINT64_MAX;

    if (!call->count || !in->dimensions)
        return false;
    uint32_t bits = reduced_of(call, in->dimensions);
    for (unsigned i = 0; i < in->dimensions; i++) {
        bool reduced = !bits || bits >> i & 1;
        *(reduced ? &inputs : &outputs) *= in->sizes[i];
        if (reduced && in->sizes[i] > 1 && in->has_strides &&
            in->strides[i] && in->strides[i] < apart)
            apart = in->strides[i];
    }
    l->a = inputs;
    l->b = outputs;
    l->c = l->grid_x_y >> 32;
    l->d = (apart == UINT64_MAX ? 1 : apart) * in->element_bytes;
    rule_set(l, TRACE_RULE_REDUCTION);
    return inputs && outputs;
}

/* TRACE_RULE_CAT: a launch takes a part of the list. */
static bool cat_words(const struct operator_call *call, struct trace_launch *l)
{
    double most = 0;

    for (unsigned i = 0; i < call->count && most <= 0; i++)
        most = call->arguments[i].elements;
    l->a = (uint64_t)most;
    l->b = l->grid_x_y >> 32;
    rule_set(l, TRACE_RULE_CAT);
    return most > 0;
}

/* TRACE_RULE_ATTENTION: for kernels whose name has the rest. */
static bool attention_words(const struct operator_call *call,
                            const char *name, struct trace_launch *l)
{
    struct operator_progress ignored = {.names_filter = false};
    struct work work;

    if (!operator_call_work(call, &ignored, name, &work) ||
        (work.family != WORK_ATTENTION_FORWARD &&
         work.family != WORK_ATTENTION_BACKWARD))
        return false;
    const struct work_attention_shape *a = &work.attention;
    l->a = trace_pack((uint32_t)a->queries, (uint32_t)a->keys);
    l->b = trace_pack((uint32_t)a->heads, (uint32_t)a->kv_heads);
    l->c = trace_pack((uint32_t)a->head_size, (uint32_t)a->value_size);
    l->d = trace_pack((uint32_t)a->batch, a->causal);
    rule_set(l, TRACE_RULE_ATTENTION);
    return true;
}

/* --- by the row's form ---------------------------------------------------- */

static bool from_word(uint8_t from)
{
    return from >= WORK_WORD_0;
}

/* Has each thread of a kernel of ROW a few elements? Random numbers come from
 * as many blocks as the GPU holds. */
static bool goes_over_elements(const struct kernel_row *row)
{
    const struct cxx_text base = cxx_text_of(row->base ? row->base : "");

    return !cxx_begins(base, "distribution") &&
           (cxx_find(base, "elementwise_kernel") != NULL);
}

/* TRACE_RULE_SIZES: the numbers that the row asks for, each at its place. */
static bool form_words(const struct operator_call *call,
                       const struct work_kernel *kernel,
                       const struct kernel_row *row, struct trace_launch *l)
{
    const struct work_form *form = &row->form;
    struct operator_extents e;
    uint64_t *words = &l->a;

    if (!operator_extents(call, row, &e))
        return false;
    if (goes_over_elements(row) && !fits_grid(l, (double)(e.rows * e.columns)))
        e = (struct operator_extents){
            (uint64_t)loop_elements(call, kernel, l), 1};
    if (form->columns == WORK_ONE)
        e = (struct operator_extents){e.rows * e.columns, 1};
    if (form->rows[0] == WORK_GRID_X)
        e.columns = (e.rows * e.columns + grid_of(l) - 1) / grid_of(l);
    if (from_word(form->rows[1]))
        words[form->rows[1] - WORK_WORD_0] = 1;
    if (from_word(form->rows[0]))
        words[form->rows[0] - WORK_WORD_0] = e.rows;
    if (from_word(form->columns))
        words[form->columns - WORK_WORD_0] = e.columns;
    rule_set(l, TRACE_RULE_SIZES);
    return true;
}

/* --- all ------------------------------------------------------------------ */

typedef bool describe_function(const struct work_kernel *kernel,
                               const struct work_launch *launch,
                               struct work *work);

static bool is_attention(describe_function *d)
{
    return d == work_flash || d == work_efficient || d == work_flash_rows;
}

static bool own_words(const struct operator_call *call,
                      const struct work_kernel *kernel, const char *name,
                      struct trace_launch *l)
{
    const struct kernel_row *row = kernel_work_row(kernel);
    describe_function *d = row->describe;
    uint64_t words[TRACE_LAUNCH_WORDS] = {0};

    if (d == work_elementwise)
        return elementwise_words(call, kernel, l);
    if (d == work_strided)
        return strided_words(call, kernel, l);
    if (d == work_foreach)
        return list_words(call, l);
    if (d == work_reduce)
        return reduce_words(call, l);
    if (d == work_cat)
        return cat_words(call, l);
    if (is_attention(d))
        return attention_words(call, name, l);
    if (d && operator_pool_words(call, row, words)) {
        memcpy(&l->a, words, sizeof words);
        rule_set(l, TRACE_RULE_SIZES);
        return true;
    }
    return !d && form_words(call, kernel, row, l);
}

static bool library_words(const struct operator_call *call,
                          struct operator_progress *progress,
                          const char *name, struct trace_launch *l)
{
    uint64_t words[TRACE_LAUNCH_WORDS] = {0};
    struct work work;

    if (!operator_call_work(call, progress, name, &work))
        return false;
    work_pack(&work, words);
    memcpy(&l->a, words, sizeof words);
    rule_set(l, TRACE_RULE_WORK);
    return true;
}

bool operator_describe(const struct operator_call *call,
                       struct operator_progress *progress,
                       const struct work_kernel *kernel, const char *name,
                       struct trace_launch *launch)
{
    struct trace_launch made = *launch;

    if (!(kernel_work_row(kernel) && own_words(call, kernel, name, &made))) {
        made = *launch;
        if (!library_words(call, progress, name, &made))
            return false;
    }
    *launch = made;
    return true;
}

bool operator_describe_grid(const struct work_kernel *kernel,
                            struct trace_launch *launch)
{
    static const struct operator_call none = {.name = ""};
    const struct kernel_row *row = kernel_work_row(kernel);
    struct trace_launch made = *launch;
    bool known = false;

    if (!row || !block_of(launch))
        return false;
    if (row->describe == work_foreach)
        known = list_words(&none, &made);
    else if (row->describe == work_elementwise && kernel->bytes[0])
        known = elementwise_words(&none, kernel, &made);
    if (known)
        *launch = made;
    return known;
}
