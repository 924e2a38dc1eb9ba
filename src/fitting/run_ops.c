/* SPDX-License-Identifier: Apache-2.0 */
#include "fitting/run_ops.h"

#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/trace/op_trace.h"

struct reading {
    struct trace_ops *t;
    struct op_trace *ops;
    struct err *err;
    char gpu[64];
    bool real; /* the GPU was not memsim's */
    int rc;
};

/* Kernels, and what has a shape in place of a grid. */
static bool is_fitted(const struct op *op)
{
    switch (op->kind) {
    case OP_GEMM:
    case OP_CONVOLUTION:
    case OP_ATTENTION:
        return true;
    default:
        return op->kind == OP_LAUNCH && op->record == TRACE_LAUNCH;
    }
}

static void grid_set(struct trace_kernel *k, const struct trace_launch *l)
{
    k->grid[0] = (uint32_t)l->grid_x_y;
    k->grid[1] = (uint32_t)(l->grid_x_y >> 32);
    k->grid[2] = (uint32_t)l->grid_z_block_x;
    k->block[0] = (uint32_t)(l->grid_z_block_x >> 32);
    k->block[1] = (uint32_t)l->block_y_z;
    k->block[2] = (uint32_t)(l->block_y_z >> 32);
}

static void op_read(void *context, const struct op *op)
{
    struct reading *r = context;
    const char *name = trace_names_get(op_trace_names(r->ops), op->name);

    if (r->rc || !op->measured || !op->duration_ns || !is_fitted(op) ||
        strstr(name, "nccl"))
        return;
    struct trace_kernel *k =
        trace_ops_add(r->t, name, op->duration_ns, r->err);
    if (!k) {
        r->rc = -1;
        return;
    }
    if (op->kind == OP_LAUNCH)
        grid_set(k, op_as_launch(op));
    work_describe(op, name, &k->work);
    k->known = k->work.source == WORK_RULE || k->work.source == WORK_EXACT;
}

static void read_item(struct reading *r, const struct trace_item *item)
{
    r->real |= trace_says_real(item);
    if (item->head.kind == TRACE_DEVICE && !*r->gpu)
        snprintf(r->gpu, sizeof r->gpu, "%.*s", (int)item->head.text_bytes,
                 item->text);
    op_trace_add(r->ops, item);
}

static int read_all(struct reading *r, const char *path)
{
    struct trace_reader reader;
    struct trace_item item;
    int rc = trace_reader_open(&reader, path, r->err);

    if (rc)
        return rc;
    while ((rc = trace_reader_next(&reader, &item, r->err)) > 0)
        read_item(r, &item);
    trace_reader_close(&reader);
    op_trace_end(r->ops);
    return rc ? rc : r->rc;
}

int run_ops_read(struct trace_ops *t, const char *path, struct err *err)
{
    struct reading r = {.t = t, .err = err};
    size_t first = t->count;

    r.ops = op_trace_create(op_read, &r);
    int rc = read_all(&r, path);
    op_trace_destroy(r.ops);
    if (!rc && !r.real)
        rc = err_set(err, "%s: its times are not a GPU's; give a run of "
                          "`memsim run --real'",
                     path);
    if (!rc && first == t->count)
        rc = err_set(err, "%s: no kernels with times in it", path);
    if (!rc)
        rc = trace_ops_gpu(t, r.gpu, path, err);
    t->traces += !rc;
    return rc;
}
