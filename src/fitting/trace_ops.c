/* SPDX-License-Identifier: Apache-2.0 */
#include "fitting/trace_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/simulated.h"
#include "common/base/xmalloc.h"
#include "common/profile/kineto_read.h"
#include "kernels/work.h"
#include "shapes/shapes.h"

#define KERNELS_MAX (1u << 28)

/* Where a kernel is among all of its trace. */
struct place {
    int64_t operator; /* its External id */
    int64_t start_ns, end_ns;
    size_t kernel; /* from the trace's first one on */
};

struct reading {
    struct trace_ops *t;
    struct err *err;
    struct shapes shapes;
    struct place *places;
    size_t count, capacity;
};

static uint32_t name_id(struct trace_ops *t, const char *text)
{
    uint64_t key = hash_text(HASH_START, text);
    void *known;

    for (; (known = map_get(&t->name_ids, key)); key++)
        if (!strcmp(t->names[(uintptr_t)known - 1], text))
            return (uint32_t)((uintptr_t)known - 1);
    xgrow(&t->names, t->name_count, &t->name_capacity, sizeof(char *));
    t->names[t->name_count++] = xstrdup(text);
    map_put(&t->name_ids, key, (void *)(uintptr_t)t->name_count);
    return (uint32_t)t->name_count - 1;
}

struct trace_kernel *trace_ops_add(struct trace_ops *t, const char *name,
                                   uint64_t ns, struct err *err)
{
    if (t->count == KERNELS_MAX) {
        err_set(err, "more than %u kernels; give fewer traces", KERNELS_MAX);
        return NULL;
    }
    xgrow(&t->kernels, t->count, &t->capacity, sizeof *t->kernels);
    struct trace_kernel *k = &t->kernels[t->count++];
    *k = (struct trace_kernel){.name = name_id(t, name),
                               .trace = (uint32_t)t->traces,
                               .ns = (double)ns,
                               .op_ns = (double)ns};
    return k;
}

static int add_kernel(struct reading *r, const struct profile_event *e)
{
    if (e->duration_ns <= 0 || strstr(e->name, "nccl"))
        return 0;
    struct trace_kernel *k =
        trace_ops_add(r->t, e->name, (uint64_t)e->duration_ns, r->err);
    if (!k)
        return -1;
    memcpy(k->grid, e->grid, sizeof k->grid);
    memcpy(k->block, e->block, sizeof k->block);
    xgrow(&r->places, r->count, &r->capacity, sizeof *r->places);
    r->places[r->count] =
        (struct place){e->external_id, e->start_ns,
                       e->start_ns + e->duration_ns, r->count};
    r->count++;
    return 0;
}

static int take_event(void *context, const struct profile_event *e)
{
    struct reading *r = context;

    if (e->phase != 'X')
        return 0;
    if (e->category == KINETO_OPERATOR)
        shapes_add(&r->shapes, e);
    if (e->category == KINETO_KERNEL)
        return add_kernel(r, e);
    return 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

/* The work of K by its operator, as far as that says it. */
static void describe_kernel(struct reading *r, int64_t operator,
                            struct trace_kernel *k)
{
    const char *name = r->t->names[k->name];
    struct trace_launch launch = {
        .grid_x_y = trace_pack(k->grid[0], k->grid[1]),
        .grid_z_block_x = trace_pack(k->grid[2], k->block[0]),
        .block_y_z = trace_pack(k->block[1], k->block[2]),
        .shared_bytes_rule = trace_pack(0, TRACE_RULE_NONE),
    };

    shapes_describe(&r->shapes, operator, name, &launch);
    const struct op op =
        op_of_record(TRACE_LAUNCH, (const uint64_t *)&launch);
    work_describe(&op, name, &k->work);
    k->known =
        k->work.source == WORK_EXACT || k->work.source == WORK_RULE;
}

/* A library's call: its first kernel, and when the last one so far ends. */
struct call {
    struct trace_kernel *head;
    int64_t end_ns;
};

/* The kernel at P is a part of C. Only what it adds to the call's time counts:
 * kernels of several streams run side by side. */
static void extend_call(struct call *c, const struct place *p)
{
    int64_t from = p->start_ns > c->end_ns ? p->start_ns : c->end_ns;

    if (p->end_ns <= from)
        return;
    c->head->op_ns += (double)(p->end_ns - from);
    c->end_ns = p->end_ns;
}

/* The kernels of a library's call are one piece of work: that of the first. */
static void describe_all(struct reading *r, size_t first)
{
    struct trace_kernel *kernels = r->t->kernels + first;
    struct call call = {NULL, 0};

    if (r->count)
        qsort(r->places, r->count, sizeof *r->places, compare_places);
    for (size_t i = 0; i < r->count; i++)
        shapes_note(&r->shapes, r->places[i].operator,
                    r->t->names[kernels[r->places[i].kernel].name]);
    for (size_t i = 0; i < r->count; i++) {
        struct trace_kernel *k = &kernels[r->places[i].kernel];
        describe_kernel(r, r->places[i].operator, k);
        if (!k->work.is_part) {
            call = (struct call){k, r->places[i].end_ns};
            continue;
        }
        if (call.head)
            extend_call(&call, &r->places[i]);
        k->work = (struct work){.family = WORK_NOTHING};
        k->known = false;
    }
}

int trace_ops_gpu(struct trace_ops *t, const char *gpu, const char *path,
                  struct err *err)
{
    if (*t->gpu && *gpu && strcmp(t->gpu, gpu))
        return err_set(err, "%s: it is of %s, the traces before of %s; fit "
                            "each GPU by itself",
                       path, gpu, t->gpu);
    if (*gpu)
        snprintf(t->gpu, sizeof t->gpu, "%s", gpu);
    return 0;
}

bool trace_ops_is_trace(const char *file)
{
    static const char *const ends[] = {".json", ".json.gz"};
    size_t length = strlen(file);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && !strcmp(file + length - end, ends[i]))
            return true;
    }
    return false;
}

int trace_ops_read(struct trace_ops *t, const char *path, struct err *err)
{
    struct reading r = {.t = t, .err = err};
    struct kineto_info info;
    size_t first = t->count;

    int rc = kineto_read(path, take_event, &r, NULL, &info, err);
    if (!rc && first == t->count)
        rc = err_set(err, "%s: no kernels in it; record with "
                          "activities=[ProfilerActivity.CPU, "
                          "ProfilerActivity.CUDA]",
                     path);
    if (!rc && info.simulated && !t->takes_simulated)
        rc = simulated_refuse(path, err);
    if (!rc)
        rc = trace_ops_gpu(t, info.gpu, path, err);
    if (!rc)
        describe_all(&r, first);
    t->traces += !rc;
    t->simulated |= !rc && info.simulated;
    free(r.places);
    shapes_fini(&r.shapes);
    return rc;
}

void trace_ops_fini(struct trace_ops *t)
{
    for (size_t i = 0; i < t->name_count; i++)
        free(t->names[i]);
    free(t->names);
    free(t->kernels);
    map_fini(&t->name_ids);
    *t = (struct trace_ops){.count = 0};
}
