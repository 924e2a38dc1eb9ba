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
#include "fitting/trace_shape.h"
#include "kernels/kernel.h"

#define KERNELS_MAX (1u << 28)
#define NONE        UINT32_MAX

/* An operator with shapes, by its External id. The texts are names. */
struct operator {
    int64_t id;
    uint32_t name, dims, types, strides; /* STRIDES: NONE, not told */
    uint32_t kernels;  /* that it launched */
    size_t product;    /* index + 1 of its kernel with the shape; 0: none */
};

struct reading {
    struct trace_ops *t;
    struct err *err;
    struct operator *operators;
    size_t count, capacity;
    struct map by_id; /* index + 1 */
    int64_t *ids;     /* of the kernels' operators, from FIRST on */
    size_t id_count, id_capacity;
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

static void add_operator(struct reading *r, const struct kineto_event *e)
{
    if (!e->input_dims || !e->input_types || e->external_id == KINETO_NONE)
        return;
    xgrow(&r->operators, r->count, &r->capacity, sizeof *r->operators);
    r->operators[r->count++] = (struct operator){
        .id = e->external_id,
        .name = name_id(r->t, e->name),
        .dims = name_id(r->t, e->input_dims),
        .types = name_id(r->t, e->input_types),
        .strides = e->input_strides ? name_id(r->t, e->input_strides) : NONE,
    };
    map_put(&r->by_id, (uint64_t)e->external_id, (void *)(uintptr_t)r->count);
}

/* The family and the type, as far as name and grid say. */
static void describe_launch(struct trace_kernel *k, const char *name)
{
    const struct trace_launch launch = {
        .grid_x_y = trace_pack(k->grid[0], k->grid[1]),
        .grid_z_block_x = trace_pack(k->grid[2], k->block[0]),
        .block_y_z = trace_pack(k->block[1], k->block[2]),
        .shared_bytes_rule = trace_pack(0, TRACE_RULE_NONE),
    };
    const uint64_t *fields = (const uint64_t *)&launch;
    const struct op op = op_of_record(TRACE_LAUNCH, fields);

    work_describe(&op, name, &k->work);
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

static int add_kernel(struct reading *r, const struct kineto_event *e)
{
    if (e->duration_ns <= 0 || strstr(e->name, "nccl"))
        return 0;
    struct trace_kernel *k =
        trace_ops_add(r->t, e->name, (uint64_t)e->duration_ns, r->err);
    if (!k)
        return -1;
    memcpy(k->grid, e->grid, sizeof k->grid);
    memcpy(k->block, e->block, sizeof k->block);
    describe_launch(k, e->name);
    xgrow(&r->ids, r->id_count, &r->id_capacity, sizeof *r->ids);
    r->ids[r->id_count++] = e->external_id;
    return 0;
}

static int take_event(void *context, const struct kineto_event *e)
{
    struct reading *r = context;

    if (e->phase != 'X')
        return 0;
    if (e->category == KINETO_OPERATOR)
        add_operator(r, e);
    if (e->category == KINETO_KERNEL)
        return add_kernel(r, e);
    return 0;
}

static struct operator *operator_of(const struct reading *r, size_t kernel)
{
    void *known = r->ids[kernel] == KINETO_NONE
                      ? NULL
                      : map_get(&r->by_id, (uint64_t)r->ids[kernel]);

    return known ? &r->operators[(uintptr_t)known - 1] : NULL;
}

/* A product's kernels are one piece of work: that of the first. */
static void describe_product(struct reading *r, struct operator *o,
                             struct trace_kernel *k,
                             const struct trace_tensors *tensors)
{
    char *const *names = r->t->names;

    if (o->product) {
        r->t->kernels[o->product - 1].op_ns += k->ns;
        k->work = (struct work){.family = WORK_NOTHING};
        return;
    }
    k->known = trace_describe_product(names[o->name], names[k->name], tensors,
                                      &k->work);
    if (k->known)
        o->product = (size_t)(k - r->t->kernels) + 1;
}

static bool is_gemm(const char *name)
{
    struct work_kernel kernel;

    work_kernel_read(name, &kernel);
    return kernel_family(&kernel) == WORK_GEMM;
}

static void describe_kernel(struct reading *r, struct operator *o,
                            struct trace_kernel *k)
{
    char *const *names = r->t->names;
    struct trace_tensors tensors;

    if (!trace_tensors_read(&tensors, names[o->dims], names[o->types],
                            o->strides == NONE ? NULL : names[o->strides]))
        return;
    if (trace_is_product(names[o->name]) && is_gemm(names[k->name]))
        describe_product(r, o, k, &tensors);
    else if (o->kernels == 1)
        k->known = trace_describe_bytes(&tensors, &k->work);
}

static void describe_all(struct reading *r, size_t first)
{
    for (size_t i = 0; i < r->id_count; i++) {
        struct operator *o = operator_of(r, i);
        if (o)
            o->kernels++;
    }
    for (size_t i = 0; i < r->id_count; i++) {
        struct operator *o = operator_of(r, i);
        if (o)
            describe_kernel(r, o, &r->t->kernels[first + i]);
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
    free(r.operators);
    free(r.ids);
    map_fini(&r.by_id);
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
