/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/insertion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define ID_BYTES 24 /* what is unique of a communicator's id */

#define BLOCK_THREADS 128 /* of PyTorch's elementwise kernels, each of 4 */
#define BLOCK_LOADS   4

struct insertion insertion_at(struct records *r, size_t at)
{
    return (struct insertion){r, at, {EDIT_REPLACE, at, at + 1, 0, 0, 0, 0}};
}

/* Counts record INDEX, which was added, as one of G. */
static void insertion_count(struct insertion *g, size_t index)
{
    if (!g->edit.copies++)
        g->edit.first = index;
}

void insertion_put(struct insertion *g, const struct insertion_record *record)
{
    struct record like = g->records->all[g->at];
    uint64_t fields[TRACE_FIELDS_MAX] = {0};

    memcpy(fields, record->words, record->count * sizeof *fields);
    like.kind = record->kind;
    like.field_count = (uint32_t)record->count;
    like.text_bytes = (uint32_t)record->bytes;
    like.time_ns += g->edit.lasts_ns;
    insertion_count(g, records_add(g->records, &like, fields, record->text));
    g->edit.lasts_ns += record->host_ns;
}

void insertion_keep(struct insertion *g)
{
    struct records *r = g->records;
    struct record like = r->all[g->at];
    uint64_t fields[TRACE_FIELDS_MAX];
    char *text = xmalloc(like.text_bytes + 1u);

    memcpy(fields, records_fields(r, &like), sizeof fields);
    memcpy(text, records_text(r, &like), like.text_bytes);
    like.time_ns += g->edit.lasts_ns;
    if (like.kind == TRACE_MEASURED)
        ((struct trace_measured *)fields)->start_ns += g->edit.lasts_ns;
    insertion_count(g, records_add(r, &like, fields, text));
    free(text);
}

uint32_t insertion_names(const struct records *r)
{
    uint64_t most = 0;

    for (size_t i = 0; i < r->count; i++)
        if (r->all[i].kind == TRACE_NAME) {
            const struct trace_name *name =
                (const struct trace_name *)records_fields(r, &r->all[i]);
            most = name->name > most ? name->name : most;
        }
    return (uint32_t)most + 1;
}

void insertion_name(struct insertion *g, uint32_t id, const char *text)
{
    insertion_put(
        g, &(struct insertion_record){TRACE_NAME, TRACE_WORDS(NAME, .name = id),
                                      TRACE_WORD_COUNT(NAME), text,
                                      strlen(text), 0});
}

void insertion_communicator(struct insertion *g, uint64_t handle,
                            uint32_t number, const struct range *members)
{
    char id[ID_BYTES + 1 + sizeof *members];

    snprintf(id, ID_BYTES + 1, "data parallel %-10" PRIu32, number);
    memcpy(id + ID_BYTES, members, sizeof *members);
    insertion_put(
        g, &(struct insertion_record){
               TRACE_COMMUNICATOR,
               TRACE_WORDS(COMMUNICATOR, .communicator = handle,
                           .ranks = members->count, .ranges = 1),
               TRACE_WORD_COUNT(COMMUNICATOR), id, ID_BYTES + sizeof *members,
               0});
}

static uint32_t grid_clamp(uint64_t blocks)
{
    return blocks < UINT32_MAX ? (uint32_t)blocks : 1;
}

void insertion_launch(struct insertion *g, const struct insertion_kernel *k)
{
    INSERTION_PUT(g, INSERTION_LAUNCH_NS, LAUNCH, .name = k->name,
                  .stream = k->stream,
                  .grid_x_y =
                      trace_pack(grid_clamp(k->blocks), grid_clamp(k->rows)),
                  .grid_z_block_x = trace_pack(1, k->threads),
                  .block_y_z = trace_pack(1, 1),
                  .shared_bytes_rule = trace_pack(0, k->rule), .a = k->a,
                  .b = k->b, .c = k->c, .d = k->d);
}

void insertion_elementwise(struct insertion *g,
                           const struct insertion_elements *e)
{
    uint64_t threads = BLOCK_THREADS * BLOCK_LOADS;

    insertion_launch(
        g, &(struct insertion_kernel){
               .name = e->name, .stream = e->stream,
               .blocks = (e->elements + threads - 1) / threads, .rows = 1,
               .threads = BLOCK_THREADS, .rule = TRACE_RULE_ELEMENTWISE,
               .a = e->elements, .b = 2, .c = e->each | e->each << 8});
}
