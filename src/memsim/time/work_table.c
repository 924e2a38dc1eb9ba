/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/work_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/demangle.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "common/catalogue/gpu.h"
#include "common/trace/op_trace.h"
#include "fits/cost_fit.h"
#include "memsim/time/work_line.h"
#include "runtime/cost/cost.h"

#define NAME_MAX_CHARS 4096

/* Operations with the same name, family and source. */
struct line {
    const char *name; /* mangled; owned */
    enum work_family family;
    enum work_source source;
    uint64_t count;
    double ns, read_bytes, written_bytes, flops;
};

/* A name of the trace that is being read. */
struct kernel {
    struct work_kernel work;
    struct line *lines[WORK_FAMILIES * (WORK_UNKNOWN + 1)];
};

struct work_table {
    struct cost_gpu gpu;
    struct cost_image *image;
    bool gpu_known;
    FILE *each; /* NULL: operations are not printed */
    unsigned depth; /* of the module calls that are open */
    struct line **lines;
    size_t line_count, line_capacity;
    struct op_trace *ops; /* of the trace that is being read */
    struct map kernels;   /* struct kernel by the trace's id of the name + 1 */
};

static int gpu_set(struct work_table *t, const char *name, struct err *err)
{
    struct gpu gpu;

    if (gpu_load(name, &gpu, err))
        return -1;
    cost_gpu_set(&gpu, &t->gpu);
    t->gpu_known = true;
    t->image = cost_fit_load(&gpu, NULL, err);
    return t->image ? 0 : -1;
}

struct work_table *work_table_create(const char *gpu, struct err *err)
{
    struct work_table *t = xcalloc(1, sizeof *t);

    if (gpu && gpu_set(t, gpu, err)) {
        free(t);
        return NULL;
    }
    return t;
}

void work_table_destroy(struct work_table *t)
{
    for (size_t i = 0; i < t->line_count; i++) {
        free((char *)t->lines[i]->name);
        free(t->lines[i]);
    }
    free(t->lines);
    free(t->image);
    free(t);
}

void work_table_each(struct work_table *t, FILE *out)
{
    t->each = out;
}

static struct line *line_add(struct work_table *t, const char *name,
                             const struct work *work)
{
    struct line *line;

    for (size_t i = 0; i < t->line_count; i++) {
        line = t->lines[i];
        if (line->family == work->family && line->source == work->source &&
            !strcmp(line->name, name))
            return line;
    }
    xgrow(&t->lines, t->line_count, &t->line_capacity, sizeof *t->lines);
    line = t->lines[t->line_count++] = xcalloc(1, sizeof *line);
    line->name = xstrdup(name);
    line->family = work->family;
    line->source = work->source;
    return line;
}

static const char *op_name(const struct work_table *t, const struct op *op)
{
    static const char *const directions[] = {
        "host to host", "host to device", "device to host", "device to device"};

    if (op->kind == OP_COPY)
        return directions[op->fields[2] & 3];
    if (op->kind == OP_SET)
        return "memset";
    return trace_names_get(op_trace_names(t->ops), op->name);
}

static struct kernel *kernel_get(struct work_table *t, const struct op *op)
{
    uint64_t key = op->name + ((uint64_t)op->kind << 32) +
                   (op->kind == OP_COPY ? op->fields[2] << 40 : 0) + 1;
    struct kernel *kernel = map_get(&t->kernels, key);

    if (kernel)
        return kernel;
    kernel = xcalloc(1, sizeof *kernel);
    if (op->kind == OP_LAUNCH)
        work_kernel_read(op_name(t, op), &kernel->work);
    map_put(&t->kernels, key, kernel);
    return kernel;
}

static void op_add(void *context, const struct op *op)
{
    struct work_table *t = context;
    struct cost_answer answer;
    struct work work;

    if (op->kind == OP_NONE || op->kind > OP_COLLECTIVE)
        return;
    struct kernel *kernel = kernel_get(t, op);
    if (op->kind == OP_LAUNCH)
        work_describe_launch(op, &kernel->work, &work);
    else
        work_describe(op, op_name(t, op), &work);
    if (work.family == WORK_NOTHING)
        return;
    cost_price(t->image, &t->gpu, &work, &answer);
    if (t->each) {
        char text[NAME_MAX_CHARS];

        demangle(op_name(t, op), text, sizeof text);
        work_line_print(&work, &answer, text, t->each);
    }
    size_t i = work.family * (WORK_UNKNOWN + 1) + work.source;
    if (!kernel->lines[i])
        kernel->lines[i] = line_add(t, op_name(t, op), &work);
    kernel->lines[i]->count++;
    kernel->lines[i]->ns += (double)answer.ns;
    kernel->lines[i]->read_bytes += work.read_bytes;
    kernel->lines[i]->written_bytes += work.written_bytes;
    kernel->lines[i]->flops += work.flops;
}

static int item_add(struct work_table *t, const struct trace_item *item,
                    struct err *err)
{
    char name[64];

    if (item->head.kind == TRACE_DEVICE && !t->gpu_known) {
        snprintf(name, sizeof name, "%.*s", (int)item->head.text_bytes,
                 item->text);
        if (gpu_set(t, name, err))
            return -1;
    }
    if (item->head.kind == TRACE_MARK && t->each)
        fprintf(t->each, "mark %.*s\n", (int)item->head.text_bytes, item->text);
    if (item->head.kind == TRACE_MODULE_ENTER && !t->depth++ && t->each)
        fputs("call\n", t->each);
    if (item->head.kind == TRACE_MODULE_LEAVE && t->depth && !--t->depth &&
        t->each)
        fputs("return\n", t->each);
    op_trace_add(t->ops, item);
    return 0;
}

int work_table_add(struct work_table *t, const char *path, struct err *err)
{
    struct trace_reader reader;
    struct trace_item item;
    size_t cursor = 0;
    int rc;

    if (trace_reader_open(&reader, path, err))
        return -1;
    t->ops = op_trace_create(op_add, t);
    t->kernels = (struct map){0};
    while ((rc = trace_reader_next(&reader, &item, err)) > 0)
        if (item_add(t, &item, err)) {
            rc = -1;
            break;
        }
    op_trace_end(t->ops);
    for (void *kernel; (kernel = map_next(&t->kernels, &cursor));)
        free(kernel);
    map_fini(&t->kernels);
    op_trace_destroy(t->ops);
    trace_reader_close(&reader);
    return rc;
}

static int line_compare(const void *a, const void *b)
{
    const struct line *x = *(struct line *const *)a;
    const struct line *y = *(struct line *const *)b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void line_print(const struct line *line, double total_ns, FILE *out)
{
    char text[NAME_MAX_CHARS];

    demangle(line->name, text, sizeof text);
    fprintf(out,
            "%6.2f %8" PRIu64 " %-20s %-7s %10.1f %10.3f %10.3f %10.3f %s\n",
            total_ns > 0 ? 100 * line->ns / total_ns : 0, line->count,
            work_family_name(line->family), work_source_name(line->source),
            line->ns / 1e3, line->read_bytes / 1e6, line->written_bytes / 1e6,
            line->flops / 1e9, text);
}

int work_table_print(struct work_table *t, FILE *out, struct err *err)
{
    double total = 0, of[WORK_UNKNOWN + 1] = {0};

    if (!t->line_count)
        return err_set(err, "the traces have no work of a GPU");
    qsort(t->lines, t->line_count, sizeof(struct line *), line_compare);
    for (size_t i = 0; i < t->line_count; i++) {
        total += t->lines[i]->ns;
        of[t->lines[i]->source] += t->lines[i]->ns;
    }
    fprintf(out, "%6s %8s %-20s %-7s %10s %10s %10s %10s %s\n", "time%",
            "count", "family", "source", "us", "read_MB", "written_MB", "GFLOP",
            "name");
    for (size_t i = 0; i < t->line_count; i++)
        line_print(t->lines[i], total, out);
    for (unsigned i = 0; i <= WORK_UNKNOWN; i++)
        fprintf(out, "%s %.2f%%%s", work_source_name((enum work_source)i),
                total > 0 ? 100 * of[i] / total : 0,
                i < WORK_UNKNOWN ? ", " : "\n");
    return 0;
}
