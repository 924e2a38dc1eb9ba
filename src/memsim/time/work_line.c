/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/work_line.h"

#include <inttypes.h>

static const char *const attention_kernels[] = {"flash2", "flash3", "efficient",
                                                "cudnn"};

const char *work_source_name(enum work_source source)
{
    static const char *const names[] = {"exact", "rule", "guessed", "unknown"};

    return names[source];
}

static void gemm_print(const struct work_gemm *g, FILE *out)
{
    fprintf(out,
            " m=%" PRIu64 " n=%" PRIu64 " k=%" PRIu64 " batch=%" PRIu64
            " lda=%" PRIu64 " ldb=%" PRIu64 " ldc=%" PRIu64
            " transpose=%d,%d shared=%d,%d alignment=%u epilogue=%u",
            g->m, g->n, g->k, g->batch, g->lda, g->ldb, g->ldc, g->transpose_a,
            g->transpose_b, g->shared_a, g->shared_b, g->alignment,
            g->epilogue);
}

static void attention_print(const struct work_attention_shape *a, FILE *out)
{
    fprintf(out,
            " batch=%" PRIu64 " heads=%" PRIu64 " kv_heads=%" PRIu64
            " queries=%" PRIu64 " keys=%" PRIu64 " head_size=%" PRIu64
            " value_size=%" PRIu64 " tile=%u,%u padded=%u causal=%d kernel=%s",
            a->batch, a->heads, a->kv_heads, a->queries, a->keys, a->head_size,
            a->value_size, a->tile_q, a->tile_k, a->padded_head_size, a->causal,
            attention_kernels[a->kernel]);
}

static void convolution_print(const struct work_convolution *c, FILE *out)
{
    fprintf(out,
            " n=%" PRIu64 " c=%" PRIu64 " h=%" PRIu64 " w=%" PRIu64
            " k=%" PRIu64 " r=%" PRIu64 " s=%" PRIu64 " groups=%" PRIu64
            " stride=%" PRIu64 ",%" PRIu64 " pad=%" PRIu64 ",%" PRIu64
            " dilation=%" PRIu64 ",%" PRIu64 " out=%" PRIu64 ",%" PRIu64
            " layout=%s",
            c->n, c->c, c->h, c->w, c->k, c->r, c->s, c->groups, c->stride_h,
            c->stride_w, c->pad_h, c->pad_w, c->dilation_h, c->dilation_w,
            c->out_h, c->out_w, c->layout == WORK_NHWC ? "nhwc" : "nchw");
}

static void rows_print(const struct work_rows *r, FILE *out)
{
    fprintf(out, " rows=%" PRIu64 " columns=%" PRIu64 " stride=%" PRIu64,
            r->rows, r->columns, r->stride);
}

static void shape_print(const struct work *work, FILE *out)
{
    switch (work->family) {
    case WORK_GEMM:
        gemm_print(&work->gemm, out);
        break;
    case WORK_ATTENTION_FORWARD:
    case WORK_ATTENTION_BACKWARD:
        attention_print(&work->attention, out);
        break;
    case WORK_CONVOLUTION_FORWARD:
    case WORK_CONVOLUTION_DGRAD:
    case WORK_CONVOLUTION_WGRAD:
        convolution_print(&work->convolution, out);
        break;
    case WORK_COPY:
        fprintf(out, " pinned=%d", work->pinned);
        break;
    case WORK_REDUCE:
    case WORK_NORM_FORWARD:
    case WORK_NORM_BACKWARD:
    case WORK_SOFTMAX_FORWARD:
    case WORK_SOFTMAX_BACKWARD:
        rows_print(&work->rows, out);
        break;
    default:
        break;
    }
}

void work_line_print(const struct work *work, const struct cost_answer *price,
                     const char *text, FILE *out)
{
    fprintf(out,
            "%s type=%s source=%s read=%.0f written=%.0f flops=%.0f "
            "elements=%" PRIu64 " element_bytes=%u blocks=%" PRIu64
            " threads=%u",
            work_family_name(work->family), work_type_name(work->type),
            work_source_name(work->source), work->read_bytes,
            work->written_bytes, work->flops, work->elements,
            work->element_bytes, work->blocks, work->threads);
    shape_print(work, out);
    fprintf(out, " ns=%" PRIu64 " basis=%s %s\n", price->ns,
            cost_basis_name(price->basis), text);
}
