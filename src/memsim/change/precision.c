/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel for fp16 and its twin for bf16 differ in their names alone, mangled
 * or not:
 *
 *   ...FillFunctorIN3c104HalfEE...    ...FillFunctorIN3c108BFloat16EE...
 *   FillFunctor<c10::Half>            FillFunctor<c10::BFloat16>
 *
 * A type is as many names inside a mangled one as the other, so that the
 * references behind it (S1_) stay. Numbers of lambdas, which PyTorch counts by
 * type, stay as well, and differ from those of the twin. */
#include "memsim/change/precision.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "memsim/change/side.h"

/* Numbers of types, and of their modes. */
#define CUDA_FP32        0 /* cudaDataType (library_types.h) */
#define CUDA_FP16        2
#define CUDA_BF16        14
#define CUDNN_FP32       0 /* cudnnDataType_t (cudnn_graph.h) */
#define CUDNN_FP16       2
#define CUDNN_BF16       9
#define NCCL_FP16        6 /* ncclDataType_t (nccl.h) */
#define NCCL_BF16        9
/* cublasComputeType_t and cublasMath_t (cublas_api.h) */
#define COMPUTE_16F      64
#define COMPUTE_32F      68
#define COMPUTE_32F_TF32 77
#define MATH_TF32        3
#define MATH_MODE_BITS   15

struct pair {
    const char *text[2]; /* of fp16 and of bf16 */
};

static const struct pair types[] = {
    {{"3c104HalfE", "3c108BFloat16E"}},
    {{"_4HalfE", "_8BFloat16E"}},
    {{"c10::Half", "c10::BFloat16"}},
    {{"7cutlass6half_tE", "7cutlass10bfloat16_tE"}},
    {{"_6half_tE", "_10bfloat16_tE"}},
    {{"cutlass::half_t", "cutlass::bfloat16_t"}},
    /* Copy.cu: casts */
    {{"24float16_copy_kernel_cudaE", "25bfloat16_copy_kernel_cudaE"}},
    {{"::float16_copy_kernel_cuda", "::bfloat16_copy_kernel_cuda"}},
    {{"33float16tofloat32_copy_kernel_cudaE",
      "34bfloat16tofloat32_copy_kernel_cudaE"}},
    {{"::float16tofloat32_copy_kernel", "::bfloat16tofloat32_copy_kernel"}},
    /* NCCL's kernels */
    {{"_Sum_f16_", "_Sum_bf16_"}},
};

/* The dimensions of convolutions and of attention. */
static const struct pair details[] = {{{"t=half ", "t=bfloat16 "}}};
static const struct pair modes[] = {{{"math=plain", "math=tensor"}}};

/* What is between two precisions. */
enum way { WAY_HALVES, WAY_TF32 };

struct work {
    struct precision_report *report;
    enum way way;
    int to; /* 0: fp16, or plain fp32; 1: bf16, or TF32 */
    struct records records;
    struct layer_marks marks;
    struct rewrite rewrite;
    struct map renamed; /* names' ids + 1 */
    bool differs; /* a batch norm that PyTorch has cuDNN do in fp16 alone */
};

/* --- texts ---------------------------------------------------------------- */

struct pairs {
    const struct pair *all;
    size_t count;
};

static const struct pair *pair_at(const struct pairs *p, int from,
                                  const char *text, size_t bytes)
{
    for (size_t i = 0; i < p->count; i++) {
        size_t length = strlen(p->all[i].text[from]);
        if (length <= bytes && !memcmp(text, p->all[i].text[from], length))
            return &p->all[i];
    }
    return NULL;
}

/* TEXT, of *BYTES, with the other texts of pairs P: to be freed, or NULL where
 * it has none of them. */
static char *text_replace(const struct pairs *p, int to, const char *text,
                          size_t *bytes)
{
    char *changed = xmalloc(2 * *bytes + 1); /* none is twice its pair */
    size_t length = 0;
    bool found = false;

    for (size_t i = 0; i < *bytes;) {
        const struct pair *pair = pair_at(p, !to, text + i, *bytes - i);
        if (!pair) {
            changed[length++] = text[i++];
            continue;
        }
        size_t with = strlen(pair->text[to]);
        memcpy(changed + length, pair->text[to], with);
        length += with;
        i += strlen(pair->text[!to]);
        found = true;
    }
    *bytes = length;
    if (found)
        return changed;
    free(changed);
    return NULL;
}

/* --- records -------------------------------------------------------------- */

/* Record INDEX is written with FIELDS, COUNT of them at least, and with the
 * texts of pairs P replaced. */
static void record_replace(struct work *w, size_t index, const uint64_t *fields,
                           uint32_t count, const struct pairs *p)
{
    struct records *r = &w->records;
    struct edit edit = {EDIT_REPLACE, index, index + 1, 1, 0, 0, 0};
    struct record like = r->all[index];
    size_t bytes = like.text_bytes;
    char *text = text_replace(p, w->to, records_text(r, &like), &bytes);

    if (text && bytes <= TRACE_TEXT_MAX)
        like.text_bytes = (uint32_t)bytes;
    if (like.field_count < count)
        like.field_count = count;
    char *kept = text ? NULL : xmalloc(like.text_bytes + 1u);
    if (kept)
        memcpy(kept, records_text(r, &like), like.text_bytes);
    edit.first = records_add(r, &like, fields, text ? text : kept);
    free(text);
    free(kept);
    rewrite_add(&w->rewrite, &edit);
}

static bool is_of_scaler(const char *name)
{
    return strstr(name, "amp_non_finite_check_and_unscale") ||
           strstr(name, "amp_update_scale");
}

/* Batch norms of 16 bits with weights of 32, as under autocast: PyTorch calls
 * cuDNN in fp16, and in bf16 kernels of its own
 * (aten/src/ATen/native/Normalization.cpp, _select_batch_norm_backend). */
static bool is_batch_norm(const char *name)
{
    static const char *const parts[] = {
        "batch_norm_transform_input_kernelIN3c108BFloat16Eff",
        "batch_norm_transform_input_kernel<c10::BFloat16, float, float",
        "cudnn::bn_", "batchnorm_fwtr", "batchnorm_bwtr"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

static void change_name(struct work *w, size_t index, uint64_t *fields)
{
    const struct pairs p = {types, sizeof types / sizeof *types};
    const struct record *record = &w->records.all[index];
    uint64_t name = ((const struct trace_name *)fields)->name;
    size_t bytes = record->text_bytes;

    const char *known = trace_names_get(&w->records.names, (uint32_t)name);
    w->report->scaler = w->report->scaler || is_of_scaler(known);
    w->differs = w->differs || is_batch_norm(known);
    char *text =
        text_replace(&p, w->to, records_text(&w->records, record), &bytes);
    if (!text)
        return;
    free(text);
    map_put(&w->renamed, name + 1, w);
    record_replace(w, index, fields, 0, &p);
}

/* The types of a product's four matrices, 16 bits each. */
static bool gemm_swap(struct trace_gemm *g, uint64_t from, uint64_t to)
{
    bool found = false;

    for (unsigned at = 0; at < 64; at += 16) {
        if ((g->types_a_b_c_d >> at & UINT16_MAX) != from)
            continue;
        g->types_a_b_c_d ^= (from ^ to) << at;
        found = true;
    }
    if (found && (uint32_t)g->compute_scale == COMPUTE_16F)
        g->compute_scale = trace_pack(COMPUTE_32F, CUDA_FP32);
    return found;
}

/* cuBLAS takes the mode of its handle, cublasLt the call's type of compute. */
static bool gemm_mode(struct trace_gemm *g, bool tf32)
{
    uint32_t compute = (uint32_t)g->compute_scale;
    bool is_lt = compute == COMPUTE_32F_TF32;
    bool is_handle = (g->math_mode & MATH_MODE_BITS) == MATH_TF32;

    if ((uint32_t)g->types_a_b_c_d != CUDA_FP32 ||
        (compute != COMPUTE_32F && !is_lt) || (is_lt || is_handle) == tf32)
        return false;
    g->compute_scale =
        trace_pack(COMPUTE_32F, (uint32_t)(g->compute_scale >> 32));
    g->math_mode =
        (g->math_mode & ~(uint64_t)MATH_MODE_BITS) | (tf32 ? MATH_TF32 : 0);
    return true;
}

static bool type_swap(uint64_t *type, uint64_t from, uint64_t to)
{
    if (*type != from)
        return false;
    *type = to;
    return true;
}

static bool change_gemm(const struct work *w, uint64_t *fields)
{
    struct trace_gemm *g = (struct trace_gemm *)fields;

    if (w->way == WAY_TF32)
        return gemm_mode(g, w->to);
    return gemm_swap(g, w->to ? CUDA_FP16 : CUDA_BF16,
                     w->to ? CUDA_BF16 : CUDA_FP16);
}

static bool change_convolution(const struct work *w, uint64_t *fields)
{
    struct trace_convolution *c = (struct trace_convolution *)fields;

    if (w->way == WAY_TF32)
        return c->type == CUDNN_FP32 &&
               type_swap(&c->engine, !w->to, (uint64_t)w->to);
    return type_swap(&c->type, w->to ? CUDNN_FP16 : CUDNN_BF16,
                     w->to ? CUDNN_BF16 : CUDNN_FP16);
}

/* Changes the FIELDS of a call of a library. False: it stays. */
static bool change_call(const struct work *w, enum trace_kind kind,
                        uint64_t *fields)
{
    switch (kind) {
    case TRACE_GEMM:
        return change_gemm(w, fields);
    case TRACE_CONVOLUTION:
        return change_convolution(w, fields);
    case TRACE_ATTENTION:
        return w->way == WAY_HALVES &&
               type_swap(&((struct trace_attention *)fields)->type,
                         w->to ? CUDNN_FP16 : CUDNN_BF16,
                         w->to ? CUDNN_BF16 : CUDNN_FP16);
    case TRACE_COLLECTIVE:
        return w->way == WAY_HALVES &&
               type_swap(&((struct trace_collective *)fields)->type,
                         w->to ? NCCL_FP16 : NCCL_BF16,
                         w->to ? NCCL_BF16 : NCCL_FP16);
    default:
        return false;
    }
}

static bool is_half_batch_norm(const struct records *r,
                               const struct record *record)
{
    const struct trace_work *work =
        (const struct trace_work *)records_fields(r, record);

    return record->kind == TRACE_LIBRARY_CALL &&
           text_begins(trace_names_get(&r->names, (uint32_t)work->name),
                       "batch norm") &&
           memmem(records_text(r, record), record->text_bytes, "=half", 5);
}

static void change_record(struct work *w, size_t index)
{
    const struct pairs p = w->way == WAY_TF32 ? (struct pairs){modes, 1}
                                              : (struct pairs){details, 1};
    const struct record *record = &w->records.all[index];
    uint64_t fields[TRACE_FIELDS_MAX];
    enum trace_kind kind = record->kind;

    memcpy(fields, records_fields(&w->records, record), sizeof fields);
    if (kind == TRACE_NAME && w->way == WAY_HALVES)
        change_name(w, index, fields);
    if (kind == TRACE_LAUNCH &&
        map_get(&w->renamed, ((struct trace_launch *)fields)->name + 1))
        w->report->kernels++;
    w->differs = w->differs || is_half_batch_norm(&w->records, record);
    if (!change_call(w, kind, fields))
        return;
    w->report->calls++;
    record_replace(w, index, fields,
                   (uint32_t)trace_kind_find(kind)->field_count, &p);
}

/* --- the whole ------------------------------------------------------------ */

static const char *const names[] = {"fp16", "bf16", "fp32", "tf32"};

static int name_find(const char *name)
{
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static int way_find(struct work *w, const struct precision_change *change,
                    struct err *err)
{
    int from = name_find(change->from), to = name_find(change->to);

    if (from < 0 || to < 0)
        return err_set(err,
                       "--change: precision: '%s' is none of fp16, bf16, fp32 "
                       "and tf32",
                       from < 0 ? change->from : change->to);
    if (from == to)
        return err_set(err, "--change: the precision is %s already",
                       change->to);
    if (from / 2 != to / 2)
        return err_set(
            err,
            "--change: from %s to %s PyTorch calls other kernels, of attention "
            "above all, and autocast adds casts: the recording does not have "
            "their operations. `memsim run' of the changed script needs no "
            "GPU; with `memsim fit' of a profile and `memsim run --fit' it "
            "has the measured GPU's times",
            change->from, change->to);
    w->way = from < 2 ? WAY_HALVES : WAY_TF32;
    w->to = to & 1;
    return 0;
}

static int change_all(struct work *w, const struct precision_change *change,
                      struct err *err)
{
    struct precision_report *report = w->report;

    report->profile = w->records.imported;
    if (report->profile && w->way == WAY_TF32)
        return err_set(err,
                       "--change: a profile does not say how large its "
                       "products are, which its time in %s depends on. "
                       "`memsim fit' of the profile and `memsim run --fit' of "
                       "the changed script need no GPU",
                       change->to);
    for (size_t i = 0; i < w->rewrite.record_count; i++)
        change_record(w, i);
    if (w->differs && w->way == WAY_HALVES)
        return err_set(err, "--change: PyTorch calls cuDNN for batch norms in "
                            "fp16 with fp32 weights, and other kernels in "
                            "bf16. `memsim run' of the changed script needs "
                            "no GPU");
    if (report->kernels || report->calls)
        return 0;
    return err_set(err, "--change: no operation of the recording is in %s",
                   change->from);
}

int precision_change(const struct precision_change *change, const char *from,
                     const char *to, struct precision_report *report,
                     struct err *err)
{
    struct work w = {.report = report};

    *report = (struct precision_report){.kernels = 0};
    if (way_find(&w, change, err) || records_read(&w.records, from, err))
        return -1;
    layer_marks_make(&w.marks, &w.records);
    w.rewrite = rewrite_of(&w.records, &w.marks);
    int rc = change_all(&w, change, err) || rewrite_write(&w.rewrite, to, err)
                 ? -1
                 : 0;
    free(w.rewrite.edits);
    map_fini(&w.renamed);
    layer_marks_fini(&w.marks);
    records_fini(&w.records);
    return rc;
}
