/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/submit.h"

#include "capture/core/diagnose/fault.h"
#include "capture/core/run/record_put.h"
#include "capture/core/work/stream_capture.h"
#include "common/trace/op.h"

static void op_submit(struct op *op)
{
    op->thread = record_thread();
    capture_work(op);
}

/* With CUDA_LAUNCH_BLOCKING=1 the host waits for each kernel. A collective's
 * may need other ranks, which may be threads of this one: it is not waited for.
 */
static void wait_blocking(uint64_t device, uint64_t stream)
{
    if (fault_is_blocking() && !memsim_capture_holds(stream))
        RECORD(SYNC_STREAM, .device = device, .stream = stream);
}

static bool is_kernel(enum trace_kind kind)
{
    return kind == TRACE_GEMM || kind == TRACE_CONVOLUTION ||
           kind == TRACE_ATTENTION || kind == TRACE_LIBRARY_CALL;
}

void memsim_submit(enum trace_kind kind, const uint64_t *fields, size_t count,
                   const char *text, size_t text_bytes)
{
    if (capture_is_on()) {
        struct op op = op_of_record(kind, fields);

        op.field_count = (uint32_t)count;
        op.text = text;
        op.text_bytes = (uint32_t)text_bytes;
        op_submit(&op);
    }
    memsim_record_text(kind, fields, count, text, text_bytes);
    if (is_kernel(kind)) /* which have TRACE_FIELDS_WORK */
        wait_blocking(fields[1], fields[2]);
}

static inline __attribute__((always_inline)) struct trace_launch
launch_fields(uint32_t name, int device, const struct kernel_launch *l,
              enum trace_rule rule, const uint64_t words[TRACE_LAUNCH_WORDS])
{
    return (struct trace_launch){
        .name = name,
        .device = (uint64_t)device,
        .stream = l->stream,
        .grid_x_y = trace_pack(l->grid[0], l->grid[1]),
        .grid_z_block_x = trace_pack(l->grid[2], l->block[0]),
        .block_y_z = trace_pack(l->block[1], l->block[2]),
        .shared_bytes_rule = trace_pack(l->shared_bytes, rule),
        .a = words[0],
        .b = words[1],
        .c = words[2],
        .d = words[3],
        .e = words[4],
        .f = words[5],
        .g = words[6],
        .h = words[7]};
}

/* Not inline: a launch that is not captured then keeps its fields in registers.
 */
static __attribute__((noinline)) void
launch_captured(uint32_t name, int device, const struct kernel_launch *l,
               enum trace_rule rule, const uint64_t words[TRACE_LAUNCH_WORDS])
{
    const struct trace_launch fields =
        launch_fields(name, device, l, rule, words);
    struct op op = op_of_record(TRACE_LAUNCH, (const uint64_t *)&fields);

    op.field_count = TRACE_WORD_COUNT(LAUNCH);
    op_submit(&op);
}

/* Fields of a launch that are never 0. */
#define LAUNCH_ALWAYS                                                          \
    (TRACE_BIT(LAUNCH, name) | TRACE_BIT(LAUNCH, grid_x_y) |                   \
     TRACE_BIT(LAUNCH, grid_z_block_x) | TRACE_BIT(LAUNCH, block_y_z))

/* A launch without words, as most kernels' that are not PyTorch's. Fields
 * behind COUNT are not looked at. */
#define LAUNCH_FIXED (TRACE_WORD_COUNT(LAUNCH) - TRACE_LAUNCH_WORDS)
static const uint64_t no_words[TRACE_LAUNCH_WORDS];

static inline __attribute__((always_inline)) void
launch_put(uint32_t name, int device, const struct kernel_launch *l,
           enum trace_rule rule, const uint64_t words[TRACE_LAUNCH_WORDS],
           size_t count)
{
    struct trace_put r = {
        .kind = TRACE_LAUNCH, .count = count, .always = LAUNCH_ALWAYS};

    /* the fields are made between the clock's call, which would have to keep
     * them, and the writing */
    record_begin(&r, false);
    const struct trace_launch fields =
        launch_fields(name, device, l, rule, words);
    r.fields = (const uint64_t *)&fields;
    record_end(&r);
}

void submit_launch(uint32_t name, int device, const struct kernel_launch *l,
                   enum trace_rule rule,
                   const uint64_t words[TRACE_LAUNCH_WORDS])
{
    if (capture_is_on())
        launch_captured(name, device, l, rule, rule ? words : no_words);
    if (rule == TRACE_RULE_NONE)
        launch_put(name, device, l, rule, no_words, LAUNCH_FIXED);
    else if (rule <= TRACE_RULE_FOREACH)
        launch_put(name, device, l, rule, words, LAUNCH_FIXED + 5);
    else
        launch_put(name, device, l, rule, words, TRACE_WORD_COUNT(LAUNCH));
    wait_blocking((uint64_t)device, l->stream);
}
