/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/tape.h"

#include <stdlib.h>

#include "common/trace/trace_read.h"
#include "common/base/xmalloc.h"

/* The replay's source tells of the calls, the trace of what they are for: both
 * are read side by side. */
struct reading {
    struct tape *tape;
    const struct replay_source *source;
    struct replay_op next; /* of the source */
    bool more;
    struct trace_reader reader;
    struct trace_names names;
    struct map blocks; /* by address: one more than the item's number */
    uint64_t ordinal;  /* of the record */
};

void tape_add(struct tape *tape, const struct tape_item *item)
{
    xgrow(&tape->items, tape->count, &tape->capacity, sizeof *tape->items);
    tape->items[tape->count++] = *item;
}

static struct tape_item *block_find(struct reading *r, uint64_t address)
{
    uintptr_t place = (uintptr_t)map_get(&r->blocks, address);

    return place ? &r->tape->items[place - 1] : NULL;
}

/* Takes the calls up to this record. */
static int calls_take(struct reading *r, struct err *err)
{
    while (r->more && r->next.index <= r->ordinal) {
        struct tape_item item = {.op = r->next, .kind = TAPE_CALL};

        tape_add(r->tape, &item);
        int more = r->source->next(r->source->context, &r->next, err);
        if (more < 0)
            return -1;
        r->more = more > 0;
    }
    return 0;
}

/* The call that was taken last is this record's. */
static void on_block_alloc(struct reading *r, const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    struct tape_item *block = &r->tape->items[r->tape->count - 1];

    block->module = (uint32_t)alloc->module;
    block->phase = (uint8_t)alloc->phase;
    map_put(&r->blocks, alloc->address, (void *)(uintptr_t)r->tape->count);
}

static void on_module(struct reading *r, const struct trace_item *item)
{
    const struct trace_module *module = trace_as_module(item);
    uint32_t parent;

    module_table_name(r->tape->modules, (uint32_t)module->module,
                      (uint32_t)module->root,
                      trace_names_get(&r->names, module->name), &parent);
}

static void mark(struct reading *r, const struct trace_item *item,
                 enum tape_kind kind)
{
    struct tape_item made = {.kind = (uint8_t)kind};

    made.op.index = r->ordinal;
    made.op.time_ns = item->head.time_ns;
    if (kind == TAPE_PHASE)
        made.phase = (uint8_t)trace_as_phase(item)->phase;
    else if (kind == TAPE_ENTER)
        made.module = (uint32_t)trace_as_module_enter(item)->module;
    else
        made.module = (uint32_t)trace_as_module_leave(item)->module;
    tape_add(r->tape, &made);
}

static void on_storage(struct reading *r, const struct trace_item *item)
{
    const struct trace_storage *storage = trace_as_storage(item);
    struct tape_item *block = block_find(r, storage->address);
    uint64_t category = storage->category;

    if (!block || category == TRACE_CATEGORY_INPUT)
        return;
    block->holds |= TAPE_OWNED;
    if (category == TRACE_CATEGORY_PARAMETER) {
        block->holds |= TAPE_PARAMETER;
        block->module = (uint32_t)storage->module;
    } else if (category == TRACE_CATEGORY_OPTIMIZER &&
               storage->element_bytes == 4) {
        block->holds |= TAPE_FP32_STATE;
    }
}

static void on_output(struct reading *r, const struct trace_output *output)
{
    struct tape_item *block = block_find(r, output->address);

    if (block)
        block->output_of = (uint32_t)output->module;
}

static void on_input(struct reading *r, const struct trace_input *input)
{
    struct tape_item *block = block_find(r, input->address);

    if (block)
        block->input_of = (uint32_t)input->module;
}

static void record_take(struct reading *r, const struct trace_item *item)
{
    switch ((enum trace_kind)item->head.kind) {
    case TRACE_NAME:
        trace_names_add(&r->names, item);
        break;
    case TRACE_BLOCK_ALLOC:
        on_block_alloc(r, item);
        break;
    case TRACE_MODULE:
        on_module(r, item);
        break;
    case TRACE_MODULE_ENTER:
        mark(r, item, TAPE_ENTER);
        break;
    case TRACE_MODULE_LEAVE:
        mark(r, item, TAPE_LEAVE);
        break;
    case TRACE_PHASE:
        mark(r, item, TAPE_PHASE);
        break;
    case TRACE_STORAGE:
        on_storage(r, item);
        break;
    case TRACE_OUTPUT:
        on_output(r, trace_as_output(item));
        break;
    case TRACE_INPUT:
        on_input(r, trace_as_input(item));
        break;
    default:
        break;
    }
}

static int read_all(struct reading *r, size_t limit, struct err *err)
{
    const struct replay_source *source = r->source;
    struct trace_item item;
    int rc = source->rewind(source->context, err);

    if (rc)
        return rc;
    rc = source->next(source->context, &r->next, err);
    r->more = rc > 0;
    while (rc >= 0 && (rc = trace_reader_next(&r->reader, &item, err)) > 0) {
        if (r->tape->count >= limit) {
            r->tape->cut = true;
            return 0;
        }
        rc = calls_take(r, err);
        if (!rc)
            record_take(r, &item);
        r->ordinal++;
    }
    return rc;
}

int tape_read(struct tape *tape, const char *path,
              const struct replay_source *source, size_t limit, struct err *err)
{
    struct reading r = {.tape = tape, .source = source};

    *tape = (struct tape){.name = source->name,
                          .modules = xcalloc(1, sizeof *tape->modules)};
    int rc = trace_reader_open(&r.reader, path, err);
    if (!rc) {
        rc = read_all(&r, limit, err);
        trace_reader_close(&r.reader);
    }
    trace_names_fini(&r.names);
    map_fini(&r.blocks);
    if (rc)
        tape_fini(tape);
    else
        module_table_count(tape->modules);
    return rc;
}

void tape_init_like(struct tape *tape, const struct tape *like)
{
    *tape = (struct tape){.name = like->name,
                          .modules = like->modules,
                          .borrows_modules = true,
                          .cut = like->cut};
}

void tape_fini(struct tape *tape)
{
    if (!tape->borrows_modules && tape->modules) {
        module_table_fini(tape->modules);
        free(tape->modules);
    }
    free(tape->items);
    *tape = (struct tape){0};
}

static int next(void *context, struct replay_op *op, struct err *err)
{
    struct tape *tape = context;

    (void)err;
    while (tape->at < tape->count && tape->items[tape->at].kind != TAPE_CALL)
        tape->at++;
    if (tape->at == tape->count)
        return 0;
    *op = tape->items[tape->at++].op;
    return 1;
}

static int back(void *context, struct err *err)
{
    struct tape *tape = context;

    (void)err;
    tape->at = 0;
    return 0;
}

const struct replay_source *tape_source(struct tape *tape)
{
    tape->source = (struct replay_source){.context = tape,
                                          .name = tape->name,
                                          .next = next,
                                          .rewind = back,
                                          .tells_refusals = true};
    return &tape->source;
}
