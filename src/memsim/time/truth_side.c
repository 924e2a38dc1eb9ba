/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/truth_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "common/trace/convolution_key.h"

#define NAME_BYTES 256

struct reader {
    struct truth_side *side;
    struct op_trace *ops;
    struct pricer *pricer;
};

/* --- shapes --------------------------------------------------------------- */

void truth_shape(const char *text, size_t bytes, char *to, size_t size)
{
    const char *end = text + bytes;
    size_t used = 0;

    *to = '\0';
    while (text < end && used < size) {
        const char *space = memchr(text, ' ', (size_t)(end - text));
        const char *past = space ? space : end;
        const char *equals = memchr(text, '=', (size_t)(past - text));

        if (equals && (equals - text == 1 || text_begins(text, "stride=")))
            used += (size_t)snprintf(to + used, size - used, " %.*s",
                                     (int)(past - text), text);
        text = past + 1;
    }
}

const struct truth_convolution *
truth_convolution_of(const struct truth_side *side, uint64_t key)
{
    uintptr_t i = (uintptr_t)map_get(&side->by_shape, key);

    return i ? &side->convolutions[i - 1] : NULL;
}

static void convolution_take(struct truth_side *s, const struct op *op)
{
    const struct trace_convolution *r = op_as_convolution(op);
    uint64_t key = convolution_key(r->operation, op->text, op->text_bytes);
    uintptr_t i = (uintptr_t)map_get(&s->by_shape, key);

    if (!i) {
        xgrow(&s->convolutions, s->convolution_count, &s->convolution_capacity,
              sizeof *s->convolutions);
        i = ++s->convolution_count;
        s->convolutions[i - 1] = (struct truth_convolution){
            .key = key,
            .operation = r->operation,
            .text = xasprintf(
                "%.*s", (int)convolution_text_bytes(op->text, op->text_bytes),
                op->text)};
        map_put(&s->by_shape, key, (void *)i);
    }
    s->convolutions[i - 1].workspace_bytes = r->workspace_bytes;
}

/* --- works ---------------------------------------------------------------- */

static uint64_t name_key(const char *name)
{
    return hash_bytes(HASH_START, name, strlen(name)) | 1;
}

const struct truth_work *truth_work_of(const struct truth_side *side,
                                       const char *name)
{
    uintptr_t i = (uintptr_t)map_get(&side->by_name, name_key(name));

    return i ? &side->works[i - 1] : NULL;
}

static struct truth_work *work_add(struct truth_side *s, const char *name)
{
    uintptr_t i = (uintptr_t)map_get(&s->by_name, name_key(name));

    if (i)
        return &s->works[i - 1];
    xgrow(&s->works, s->work_count, &s->work_capacity, sizeof *s->works);
    struct truth_work *work = &s->works[s->work_count++];
    *work = (struct truth_work){.name = xstrdup(name)};
    map_put(&s->by_name, name_key(name), (void *)(uintptr_t)s->work_count);
    return work;
}

static const char *shape_name(const struct op *op, enum work_family family,
                              char name[NAME_BYTES])
{
    size_t used = (size_t)snprintf(name, NAME_BYTES, "%s",
                                   work_family_name(family));

    truth_shape(op->text, op->text_bytes, name + used, NAME_BYTES - used);
    return name;
}

/* What OP's time is listed under: a convolution and an attention by shape. */
static const char *op_name(const struct reader *r, const struct op *op,
                           enum work_family family, char name[NAME_BYTES])
{
    switch (op->kind) {
    case OP_COPY:
        return "copies";
    case OP_SET:
        return "memory sets";
    case OP_CONVOLUTION:
    case OP_ATTENTION:
        return shape_name(op, family, name);
    default:
        return trace_names_get(op_trace_names(r->ops), op->name);
    }
}

/* Of a launch; other operations have none. */
static void grid_take(struct truth_work *work, const struct op *op)
{
    const struct trace_launch *l = (const struct trace_launch *)op->fields;

    if (op->kind != OP_LAUNCH)
        return;
    uint64_t z = l->grid_z_block_x & UINT32_MAX;
    if (work->count && (work->grid_x_y != l->grid_x_y || work->grid_z != z))
        work->grids = true;
    work->grid_x_y = l->grid_x_y;
    work->grid_z = z;
}

static void op_add(void *context, const struct op *op)
{
    struct reader *r = context;
    char name[NAME_BYTES];
    struct price price;

    if (op->kind == OP_NONE || op->kind > OP_COLLECTIVE ||
        op->kind == OP_HOST_FUNCTION)
        return;
    pricer_price(r->pricer, op, op_trace_names(r->ops), NULL, &price);
    if (!price.answer.ns && !op->measured)
        return; /* a setting of a library's */
    if (op->kind == OP_CONVOLUTION && op->text)
        convolution_take(r->side, op);
    double ns = (double)(op->measured ? op->duration_ns : price.answer.ns);
    struct truth_work *work =
        work_add(r->side, op_name(r, op, price.family, name));
    grid_take(work, op);
    work->family = price.family;
    work->count++;
    work->ns += ns;
    r->side->measured |= op->measured;
    r->side->family_ns[price.family] += ns;
    r->side->family_count[price.family]++;
}

/* --- blocks --------------------------------------------------------------- */

static void event_add(struct truth_side *s, const struct truth_event *event)
{
    xgrow(&s->events, s->event_count, &s->event_capacity, sizeof *s->events);
    s->events[s->event_count++] = *event;
}

static void item_add(struct reader *r, const struct trace_item *item)
{
    const struct trace_block_alloc *a;

    switch (item->head.kind) {
    case TRACE_BLOCK_ALLOC:
        a = trace_as_block_alloc(item);
        event_add(r->side, &(struct truth_event){
                               .address = a->address,
                               .requested_bytes = a->requested_bytes,
                               .block_bytes = a->block_bytes,
                               .operator = (uint32_t)a->operator,
                               .module = (uint32_t)a->module});
        break;
    case TRACE_BLOCK_FREE:
        event_add(r->side,
                  &(struct truth_event){
                      .is_free = true,
                      .address = trace_as_block_free(item)->address,
                      .block_bytes = trace_as_block_free(item)->block_bytes});
        break;
    case TRACE_MODULE:
        map_put(&r->side->modules, trace_as_module(item)->module + 1,
                (void *)(uintptr_t)(trace_as_module(item)->name + 1));
        break;
    default:
        break;
    }
    op_trace_add(r->ops, item);
}

const char *truth_operator(const struct truth_side *side,
                           const struct truth_event *e)
{
    return e->operator ? trace_names_get(&side->names, e->operator) : "";
}

const char *truth_module(const struct truth_side *side,
                         const struct truth_event *e)
{
    uintptr_t name = (uintptr_t)map_get(&side->modules, e->module + 1ull);

    return e->module && name > 1
               ? trace_names_get(&side->names, (uint32_t)name - 1)
               : "";
}

/* -------------------------------------------------------------------------- */

int truth_side_read(struct truth_side *side, const char *path,
                    const struct price_options *options, struct err *err)
{
    struct reader r = {.side = side};
    struct trace_reader reader;
    struct trace_item item;
    int rc;

    *side = (struct truth_side){0};
    if (trace_reader_open(&reader, path, err))
        return -1;
    r.ops = op_trace_create(op_add, &r);
    r.pricer = pricer_create(options);
    while ((rc = trace_reader_next(&reader, &item, err)) > 0)
        item_add(&r, &item);
    op_trace_end(r.ops);
    side->names = op_trace_names_take(r.ops);
    op_trace_destroy(r.ops);
    pricer_destroy(r.pricer);
    trace_reader_close(&reader);
    if (rc)
        truth_side_fini(side);
    return rc;
}

void truth_side_fini(struct truth_side *side)
{
    for (size_t i = 0; i < side->work_count; i++)
        free((char *)side->works[i].name);
    free(side->works);
    free(side->events);
    for (size_t i = 0; i < side->convolution_count; i++)
        free(side->convolutions[i].text);
    free(side->convolutions);
    map_fini(&side->by_shape);
    map_fini(&side->modules);
    map_fini(&side->by_name);
    trace_names_fini(&side->names);
    *side = (struct truth_side){0};
}

const char *truth_pass(uint64_t operation)
{
    static const char *const names[TRUTH_PASSES] = {"forward", "backward data",
                                                    "backward filter"};

    return operation < TRUTH_PASSES ? names[operation] : "other";
}
