/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/label.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernel_words.h"

#define WORKSPACE UINT64_C(0x10000) /* added to the kind: scratch memory */

/* How much scratch memory was lent to a library's work; 0: none. */
static uint64_t workspace_bytes(const struct trace_item *item)
{
    switch (item->head.kind) {
    case TRACE_GEMM:
        return trace_as_gemm(item)->workspace_bytes;
    case TRACE_CONVOLUTION:
        return trace_as_convolution(item)->workspace_bytes;
    case TRACE_ATTENTION:
        return trace_as_attention(item)->workspace_bytes;
    case TRACE_LIBRARY_CALL:
        return trace_as_library_call(item)->workspace_bytes;
    default:
        return 0;
    }
}

static bool is_workspace(const struct trace_item *item,
                         uint64_t requested_bytes)
{
    return requested_bytes && workspace_bytes(item) == requested_bytes;
}

struct label label_workspace(enum trace_kind kind)
{
    return (struct label){.kind = kind + WORKSPACE};
}

bool label_is_workspace(const struct label *label)
{
    return label->kind >= WORKSPACE;
}

static void gemm_numbers(const struct trace_gemm *gemm, uint64_t numbers[4])
{
    numbers[0] = gemm->m;
    numbers[1] = gemm->n;
    numbers[2] = gemm->k;
    numbers[3] = gemm->batch;
}

struct label label_make(const struct trace_item *item, uint64_t requested_bytes)
{
    struct label label = {.kind = item->head.kind};

    if (is_workspace(item, requested_bytes))
        return label_workspace(item->head.kind);
    switch (item->head.kind) {
    case TRACE_COPY:
        label.numbers[0] = trace_as_copy(item)->direction;
        break;
    case TRACE_SET:
        break;
    case TRACE_GEMM:
        gemm_numbers(trace_as_gemm(item), label.numbers);
        break;
    default:
        label.name = trace_work(item) ? trace_work(item)->name : 0;
    }
    return label;
}

static void format_copy(const struct label *label, const char *name, char *out,
                        size_t size)
{
    static const char *const texts[] = {
        [TRACE_HOST_TO_HOST] = "copied by the host",
        [TRACE_HOST_TO_DEVICE] = "copied from the host (.to, .cuda)",
        [TRACE_DEVICE_TO_HOST] = "copied to the host",
        [TRACE_DEVICE_TO_DEVICE] = "copied within the GPU",
    };
    uint64_t direction = label->numbers[0];

    (void)name;
    snprintf(out, size, "%s",
             direction < sizeof texts / sizeof *texts ? texts[direction]
                                                      : "copied");
}

/* cuBLAS counts columns first: its m x n is PyTorch's n rows of m. */
static void format_gemm(const struct label *label, const char *name, char *out,
                        size_t size)
{
    const uint64_t *n = label->numbers;
    int width = 0;

    (void)name;
    if (n[3] > 1)
        width = snprintf(out, size, "matmul %" PRIu64 " x ", n[3]);
    else
        width = snprintf(out, size, "matmul ");
    snprintf(out + width, size - (size_t)width,
             "%" PRIu64 "x%" PRIu64 " over %" PRIu64, n[1], n[0], n[2]);
}

static void format_launch(const struct label *label, const char *name,
                          char *out, size_t size)
{
    (void)label;
    kernel_words(name, out, size);
}

/* cuDNN's plans have names that only say the direction. */
static void format_named(const struct label *label, const char *name, char *out,
                         size_t size)
{
    const char *what = "";

    if (label->kind == TRACE_CONVOLUTION)
        what = "convolution ";
    if (label->kind == TRACE_ATTENTION)
        what = "attention ";
    snprintf(out, size, "%s%s", what, name);
}

static const struct format {
    uint64_t kind;
    const char *text; /* NULL: `write` says */
    void (*write)(const struct label *, const char *name, char *, size_t);
} formats[] = {
    {0, "not used yet", NULL},
    {TRACE_SET, "cleared (memset)", NULL},
    {TRACE_COPY, NULL, format_copy},
    {TRACE_GEMM, NULL, format_gemm},
    {TRACE_LAUNCH, NULL, format_launch},
    {TRACE_CONVOLUTION, NULL, format_named},
    {TRACE_ATTENTION, NULL, format_named},
    {TRACE_COLLECTIVE, NULL, format_named},
    {TRACE_LIBRARY_CALL, NULL, format_named},
    {TRACE_GEMM + WORKSPACE, "cuBLAS workspace", NULL},
    {TRACE_CONVOLUTION + WORKSPACE, "convolution workspace", NULL},
    {TRACE_ATTENTION + WORKSPACE, "attention workspace", NULL},
    {TRACE_LIBRARY_CALL + WORKSPACE, "library workspace", NULL},
};

void label_format(const struct label *label, const struct trace_names *names,
                  char *out, size_t size)
{
    const char *name = trace_names_get(names, label->name);

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].kind != label->kind)
            continue;
        if (formats[i].text)
            snprintf(out, size, "%s", formats[i].text);
        else
            formats[i].write(label, name, out, size);
        return;
    }
    snprintf(out, size, "unknown");
}
