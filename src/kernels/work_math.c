/* SPDX-License-Identifier: Apache-2.0
 * Calls of cuFFT, cuSOLVER, cuSPARSE, cuBLAS's solvers and cuDNN's recurrent
 * networks: arithmetic and bytes from the sizes in their records. */
#include <math.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "kernels/work_internal.h"

typedef const struct trace_library_call call_record;

static uint64_t whole_of(double count)
{
    return (uint64_t)fmin(count, 1e18);
}

static bool type_set(struct work *work, uint64_t number, bool *complex)
{
    *complex = number == 4 || number == 5; /* CUDA_C_32F, CUDA_C_64F */
    work->element_bytes = work_data_type(number, &work->type);
    return work->element_bytes;
}

/* --- Fourier transforms --------------------------------------------------- */

/* 5 N log2 N operations of N complex points. Each dimension is a pass over
 * memory; a real input or output is in the first or last one. */
static bool describe_fft(call_record *r, struct work *work)
{
    const uint64_t sizes[] = {r->b, r->c, r->d};
    uint64_t rank = r->a & UINT32_MAX, type = r->a >> 32 & UINT16_MAX;
    bool real = r->a >> 48, complex;
    double points = 1;

    if (!rank || rank > 3 || !type || !type_set(work, type - 1, &complex))
        return false;
    for (uint64_t i = 0; i < rank; i++)
        points *= (double)sizes[i];
    double last = (double)sizes[rank - 1], bytes = work->element_bytes;
    double spectrum = real && last > 0 ? points / last * floor(last / 2 + 1)
                                       : points;
    double batch = (double)r->e;
    double inner = batch * spectrum * bytes;
    double outer = real ? batch * points * bytes / 2 : inner;
    bool forward = (int64_t)r->f < 0;
    work->elements = whole_of(batch * points);
    work->flops = (real ? 2.5 : 5) * batch * points * log2(fmax(points, 2));
    work->read_bytes = (forward ? outer : inner) + (double)(rank - 1) * inner;
    work->written_bytes =
        (forward ? inner : outer) + (double)(rank - 1) * inner;
    work->source = WORK_EXACT;
    return true;
}

/* --- factorisations ------------------------------------------------------- */

/* Operations on an m x n matrix (n the smaller) with k columns beside it; those
 * of LAPACK's algorithms (LAPACK Working Note 41; eigenvalues and singular
 * values with their vectors: Golub and Van Loan). Complex ones count four
 * times. NAME is a part of the function's. */
static const struct solver {
    const char *name;
    double mnn, nnn, nnk, mnk; /* what each product counts */
    double matrix, side;       /* elements moved: m n and n k, so often */
} solvers[] = {
    {"getrf", 1, -1.0 / 3, 0, 0, 2, 0},
    {"getrs", 0, 0, 2, 0, 1, 2},
    {"getri", 0, 4.0 / 3, 0, 0, 2, 0},
    {"matinv", 0, 2, 0, 0, 2, 0},
    {"potrf", 0, 1.0 / 3, 0, 0, 1, 0},
    {"potrs", 0, 0, 2, 0, 0.5, 2},
    {"potri", 0, 2.0 / 3, 0, 0, 1, 0},
    {"trtri", 0, 1.0 / 3, 0, 0, 1, 0},
    {"trsm", 0, 0, 0, 1, 2, 0},
    {"sytrf", 0, 1.0 / 3, 0, 0, 1, 0},
    {"sytrs", 0, 0, 2, 0, 0.5, 2},
    {"geqrf", 2, -2.0 / 3, 0, 0, 2, 0},
    {"gels", 2, -2.0 / 3, 4, 0, 1, 2},
    {"gqr", 2, -2.0 / 3, 0, 0, 2, 0},
    {"mqr", 0, 0, -2, 4, 2, 1},
    {"evd", 0, 9, 0, 0, 2, 0},
    {"evj", 0, 9, 0, 0, 2, 0},
    {"gvd", 0, 14, 0, 0, 4, 0},
    {"syevBatched", 0, 9, 0, 0, 2, 0},
    {"geev", 0, 25, 0, 0, 3, 0},
    {"gesvd", 14, 8, 0, 0, 3, 0},
};

static bool describe_solver(const struct solver *s, call_record *r,
                            struct work *work)
{
    double m = (double)r->a, n = (double)r->b, k = (double)r->c;
    double batch = r->d ? (double)r->d : 1;
    bool complex;

    if (!type_set(work, r->e, &complex))
        return false;
    double flops = s->mnn * m * n * n + s->nnn * n * n * n +
                   s->nnk * n * n * k + s->mnk * m * n * k;
    work->elements = whole_of(batch * m * n);
    work->flops = batch * fmax(flops, 0) * (complex ? 4 : 1);
    work->read_bytes = batch * work->element_bytes *
                       (s->matrix * m * n + s->side * n * k);
    work->source = WORK_GUESSED; /* how fast they run is not known */
    return true;
}

/* --- sparse matrices ------------------------------------------------------ */

#define INDEX_BYTES 8.0 /* PyTorch's */

/* A sparse rows x columns matrix of COUNT elements, and dense ones that are
 * WIDTH wide. */
static bool describe_sparse(call_record *r, struct work *work)
{
    double rows = (double)r->a, columns = (double)r->b, count = (double)r->c;
    double width = (double)r->d;
    bool complex;

    if (!type_set(work, r->f, &complex))
        return false;
    work->elements = r->c;
    work->flops = 2 * count * width * (complex ? 4 : 1);
    work->read_bytes = count * (work->element_bytes + INDEX_BYTES) +
                       rows * INDEX_BYTES +
                       columns * width * work->element_bytes;
    work->written_bytes = rows * width * work->element_bytes;
    work->source = WORK_EXACT;
    return true;
}

/* --- recurrent networks --------------------------------------------------- */

/* What the descriptor says; lengths that differ count as their mean. */
static bool recurrent_shape(const struct op *op, call_record *r,
                            enum work_pass pass, struct work_recurrent *shape)
{
    uint64_t steps = work_text_number(op, "length") & INT32_MAX;

    *shape = (struct work_recurrent){
        .tokens = r->a & INT32_MAX,
        .steps = steps ? steps : 1,
        .input = r->b & INT32_MAX,
        .hidden = r->c & INT32_MAX,
        .layers = r->d & INT32_MAX,
        .directions = r->e == 2 ? 2 : 1,
        .gates = r->f & 7,
        .type_bytes = 4,
        .pass = pass,
    };
    return shape->tokens && shape->input && shape->hidden && shape->layers &&
           shape->gates;
}

static void set_recurrent_type(const struct op *op, struct work *work)
{
    work->element_bytes = 4;
    work->type = work_text_has(op, "math=tensor") ? WORK_TF32 : WORK_FP32;
    if (work_text_has(op, "type=half"))
        work->type = WORK_FP16;
    if (work_text_has(op, "type=bfloat16"))
        work->type = WORK_BF16;
    if (work->type == WORK_FP16 || work->type == WORK_BF16)
        work->element_bytes = 2;
    if (work_text_has(op, "type=double")) {
        work->type = WORK_FP64;
        work->element_bytes = 8;
    }
}

/* Layer by layer, the gates of each token from its input and from the state:
 * two products; backward, of data or of weights, as many again. */
void work_recurrent_moves(struct work *work)
{
    struct work_recurrent *shape = &work->recurrent;
    double tokens = (double)shape->tokens, hidden = (double)shape->hidden;
    double layers = (double)shape->layers, gates = shape->gates;
    double first = (double)shape->input, later = hidden * shape->directions;
    double inputs = first + (layers - 1) * later + layers * hidden;
    double weights = shape->directions * gates * hidden * inputs;

    shape->type_bytes = work->element_bytes;
    work->elements = whole_of(tokens * later);
    work->flops = 2 * tokens * weights;
    work->read_bytes =
        work->element_bytes * (weights + tokens * (first + layers * later));
    work->written_bytes = work->element_bytes * tokens * layers * later * gates;
    work->is_recurrent = true;
    work->source = WORK_EXACT;
}

/* What the host launches for a call, as cuDNN 9.19 did on an H200 for an LSTM
 * of two layers and 128 steps (261 and 258 kernels of its own, 256 and 258 sets
 * of memory, 32 and 36 of nvjet's): for a step of a layer and direction a set,
 * a product and the cells; a product for eight steps' inputs. */
#define STEP_LAUNCHES 3
#define STEPS_AT_ONCE 8

/* Persistent kernels run all steps of a layer. */
static uint32_t recurrent_launches(const struct work_recurrent *s,
                                   bool persistent)
{
    uint64_t inputs = (s->steps + STEPS_AT_ONCE - 1) / STEPS_AT_ONCE;
    uint64_t each = STEP_LAUNCHES * s->steps + inputs;
    double all = (double)s->layers * s->directions;

    if (persistent || s->pass == WORK_PASS_WEIGHTS)
        each = 2;
    all *= (double)each;
    return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

static bool describe_recurrent(const struct op *op, call_record *r,
                               enum work_pass pass, struct work *work)
{
    if (!recurrent_shape(op, r, pass, &work->recurrent))
        return false;
    set_recurrent_type(op, work);
    work_recurrent_moves(work);
    bool persistent = work_text_has(op, "kernel=persistent");
    work->launches = recurrent_launches(&work->recurrent, persistent);
    return true;
}

static enum work_pass pass_of(const char *name)
{
    return strstr(name, "weights") ? WORK_PASS_WEIGHTS
           : strstr(name, "data")  ? WORK_PASS_DATA
                                   : WORK_PASS_FORWARD;
}

/* -------------------------------------------------------------------------- */

static bool is_sparse_product(const char *name)
{
    return text_begins(name, "cusparseSpM") && !strchr(name, '_');
}

bool work_math(const struct op *op, const char *name, struct work *work)
{
    call_record *r = RECORD_OF(op, LIBRARY_CALL, library_call);

    if (text_begins(name, "cufft"))
        return describe_fft(r, work);
    if (is_sparse_product(name) || !strcmp(name, "cusparseSDDMM"))
        return describe_sparse(r, work);
    if (text_begins(name, "rnn "))
        return describe_recurrent(op, r, pass_of(name), work);
    if (!text_begins(name, "cusolver") && !text_begins(name, "cublas"))
        return false;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++)
        if (strstr(name, solvers[i].name))
            return describe_solver(&solvers[i], r, work);
    return false;
}
