/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/export/perfetto_blocks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"

#define LEAST_BYTES (64 * KIB)
#define ROWS_MAX    (4 * PERFETTO_BLOCKS)

/* Addresses of a GPU end below 2^56. */
static uint64_t key_of(uint64_t device, uint64_t address)
{
    return address ^ device << 56;
}

static void text_keep(struct perfetto_blocks *b,
                      const struct trace_names *names, uint64_t id)
{
    if (id && !map_get(&b->texts, id))
        map_put(&b->texts, id, xstrdup(trace_names_get(names, id)));
}

/* Leaves out the smallest ones until LIMIT are left. */
static void rows_thin(struct perfetto_blocks *b, size_t limit)
{
    while (b->count > limit) {
        size_t kept = 0;

        b->least_bytes *= 2;
        for (size_t i = 0; i < b->count; i++) {
            const struct perfetto_block row = b->rows[i];
            uint64_t key = key_of(row.device, row.address);
            bool stays = row.bytes >= b->least_bytes;
            if (!row.end_ns)
                map_take(&b->live, key);
            if (stays && !row.end_ns)
                map_put(&b->live, key, (void *)(uintptr_t)(kept + 1));
            if (stays)
                b->rows[kept++] = row;
        }
        b->count = kept;
    }
}

static void on_alloc(struct perfetto_blocks *b, const struct trace_item *item,
                     const struct trace_names *names)
{
    const struct trace_block_alloc *a = trace_as_block_alloc(item);

    if (!b->least_bytes)
        b->least_bytes = LEAST_BYTES;
    if (a->block_bytes < b->least_bytes)
        return;
    if (b->count == ROWS_MAX)
        rows_thin(b, ROWS_MAX / 2);
    uint64_t module = (uintptr_t)map_get(&b->modules, a->module);
    xgrow(&b->rows, b->count, &b->capacity, sizeof *b->rows);
    b->rows[b->count++] = (struct perfetto_block){
        .device = a->device,
        .address = a->address,
        .bytes = a->block_bytes,
        .begin_ns = item->head.time_ns,
        .operation = a->operator,
        .module = module,
        .shape = a->shape,
        .stack = a->stack,
    };
    map_put(&b->live, key_of(a->device, a->address),
            (void *)(uintptr_t)b->count);
    text_keep(b, names, a->operator);
    text_keep(b, names, module);
    text_keep(b, names, a->shape);
    text_keep(b, names, a->stack);
}

static void on_free(struct perfetto_blocks *b, const struct trace_item *item)
{
    const struct trace_block_free *f = trace_as_block_free(item);
    size_t place = (uintptr_t)map_take(&b->live, key_of(f->device, f->address));

    if (place)
        b->rows[place - 1].end_ns = item->head.time_ns;
}

void perfetto_blocks_take(struct perfetto_blocks *b,
                          const struct trace_item *item,
                          const struct trace_names *names)
{
    if (item->head.kind == TRACE_BLOCK_ALLOC) {
        on_alloc(b, item, names);
    } else if (item->head.kind == TRACE_BLOCK_FREE) {
        on_free(b, item);
    } else if (item->head.kind == TRACE_MODULE) {
        const struct trace_module *m = trace_as_module(item);
        if (m->name)
            map_put(&b->modules, m->module, (void *)(uintptr_t)m->name);
    }
}

static void put_member(FILE *out, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(out, ",\"%s\":", name);
    perfetto_put_text(out, text);
}

static void row_write(const struct perfetto_blocks *b, size_t place,
                      struct perfetto *to, struct perfetto_track track,
                      uint64_t end_ns)
{
    const struct perfetto_block *row = &b->rows[place];
    const char *operation = map_get(&b->texts, row->operation);
    struct perfetto_async async = {
        .category = "memory",
        .id = (uint64_t)track.thread << 32 | place,
        .name = operation && *operation ? operation : "block",
    };

    perfetto_async_begin(to, track, row->begin_ns, &async);
    fprintf(to->out, ",\"args\":{\"bytes\":%" PRIu64 ",\"GPU\":%" PRIu64,
            row->bytes, row->device);
    put_member(to->out, "tensor", map_get(&b->texts, row->shape));
    put_member(to->out, "module", map_get(&b->texts, row->module));
    put_member(to->out, "stack", map_get(&b->texts, row->stack));
    fputc('}', to->out);
    perfetto_async_close(to);
    perfetto_async_end(to, track, row->end_ns ? row->end_ns : end_ns, &async);
}

/* The smallest size of the PERFETTO_BLOCKS largest ones, and what is larger. */
static uint64_t least_written(const struct perfetto_blocks *b)
{
    uint64_t least = b->least_bytes;

    for (;; least *= 2) {
        size_t count = 0;

        for (size_t i = 0; i < b->count; i++)
            count += b->rows[i].bytes >= least;
        if (count <= PERFETTO_BLOCKS)
            return least;
    }
}

void perfetto_blocks_write(const struct perfetto_blocks *b, struct perfetto *to,
                           struct perfetto_track track, uint64_t end_ns)
{
    uint64_t least = least_written(b);

    for (size_t i = 0; i < b->count; i++)
        if (b->rows[i].bytes >= least)
            row_write(b, i, to, track, end_ns);
}

void perfetto_blocks_fini(struct perfetto_blocks *b)
{
    size_t cursor = 0;

    for (void *text; (text = map_next(&b->texts, &cursor));)
        free(text);
    map_fini(&b->texts);
    map_fini(&b->modules);
    map_fini(&b->live);
    free(b->rows);
    *b = (struct perfetto_blocks){0};
}
