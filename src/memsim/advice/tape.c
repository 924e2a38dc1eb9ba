/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/tape.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "common/trace/trace_read.h"
#include "common/base/xmalloc.h"

/* Items without their calls, in the order of the records: the marks, and what
 * is known of each block. */
struct tape_notes {
    struct tape tape;
    size_t limit;
    const struct trace_names *names; /* of the pass */
    struct map blocks; /* by address: one more than the item's number */
    struct map kernels; /* by name: enum filling */
    uint8_t phase;      /* of the program */
    uint64_t ordinal;  /* of the record */
};

void tape_add(struct tape *tape, const struct tape_item *item)
{
    xgrow(&tape->items, tape->count, &tape->capacity, sizeof *tape->items);
    tape->items[tape->count++] = *item;
}

static struct tape_item *block_find(struct tape_notes *r, uint64_t address)
{
    uintptr_t place = (uintptr_t)map_get(&r->blocks, address);

    return place ? &r->tape.items[place - 1] : NULL;
}

/* The ranges of torch.optim's optimizers with an option `fused' for CUDA. */
static bool can_be_fused(const char *range)
{
    static const char *const ranges[] = {
        "Optimizer.step#Adam.step",
        "Optimizer.step#AdamW.step",
        "Optimizer.step#SGD.step",
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (!strcmp(range, ranges[i]))
            return true;
    return false;
}

/* Data-parallel wrappers name their ranges. */
static uint8_t wrapper_read(const char *range)
{
    static const struct {
        const char *prefix;
        uint8_t maker;
    } wrappers[] = {
        {"c10d::Reducer", TAPE_BUCKET},
        {"FSDP::", TAPE_SHARDED},
        {"FullyShardedDataParallel", TAPE_SHARDED},
    };

    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (text_begins(range, wrappers[i].prefix))
            return wrappers[i].maker;
    return 0;
}

/* What cross entropy makes, forward and backward. */
static bool is_loss(const char *operation)
{
    static const char *const operations[] = {
        "aten::_log_softmax",
        "aten::_log_softmax_backward_data",
        "aten::nll_loss_backward",
    };

    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (!strcmp(operation, operations[i]))
            return true;
    return false;
}

/* SHAPE is "float32 8x1024", or empty. */
static void shape_note(struct tape_item *item, const char *shape)
{
    const char *at = strchr(shape, ' ');
    uint64_t elements = at != NULL;

    for (char *end; at && *at; at = end) {
        uint64_t dim = strtoull(at + 1, &end, 10);

        if (end == at + 1)
            return;
        elements *= dim;
        item->last_dim = (uint32_t)dim;
    }
    item->elements = elements;
}

static void on_block_alloc(struct tape_notes *r, const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    struct tape_item made = {.kind = TAPE_CALL,
                             .module = (uint32_t)alloc->module,
                             .phase = (uint8_t)alloc->phase};

    const char *operation = trace_names_get(r->names, alloc->operator);

    made.op.index = r->ordinal;
    shape_note(&made, trace_names_get(r->names, alloc->shape));
    const char *range = trace_names_get(r->names, alloc->range);
    /* A closure computes the model inside the optimizer's step. */
    if (alloc->phase == TRACE_PHASE_OPTIMIZER && can_be_fused(range))
        made.holds |= TAPE_STEP;
    made.maker |= wrapper_read(range);
    if (!strcmp(operation, "aten::_to_copy"))
        made.maker |= TAPE_CAST;
    if (is_loss(operation))
        made.holds |= TAPE_LOSS;
    tape_add(&r->tape, &made);
    map_put(&r->blocks, alloc->address, (void *)(uintptr_t)r->tape.count);
}

static void on_module(struct tape_notes *r, const struct trace_item *item)
{
    const struct trace_module *module = trace_as_module(item);
    uint32_t parent;

    module_table_name(r->tape.modules, (uint32_t)module->module,
                      (uint32_t)module->root,
                      trace_names_get(r->names, module->name), &parent);
}

static void mark_item(struct tape_notes *r, const struct trace_item *item,
                      enum tape_kind kind)
{
    struct tape_item made = {.kind = (uint8_t)kind};

    made.op.index = r->ordinal;
    made.op.time_ns = item->head.time_ns;
    if (kind == TAPE_PHASE)
        r->phase = made.phase = (uint8_t)trace_as_phase(item)->phase;
    else if (kind == TAPE_ENTER)
        made.module = (uint32_t)trace_as_module_enter(item)->module;
    else
        made.module = (uint32_t)trace_as_module_leave(item)->module;
    tape_add(&r->tape, &made);
}

/* What a kernel does that sets all elements: of one tensor, or of a list. */
enum filling { FILLS_NONE = 1, FILLS_ONE, FILLS_LIST };

static enum filling filling_read(struct tape_notes *r, uint64_t name)
{
    enum filling known = (uintptr_t)map_get(&r->kernels, name);

    if (!known) {
        const char *kernel = trace_names_get(r->names, name);

        known = strstr(kernel, "FillFunctor")   ? FILLS_ONE
                : strstr(kernel, "ZeroFunctor") ? FILLS_LIST
                                                : FILLS_NONE;
        map_put(&r->kernels, name, (void *)(uintptr_t)known);
    }
    return known;
}

/* zero_grad(set_to_none=False), say, but no torch.zeros(). */
static void on_launch(struct tape_notes *r, const struct trace_item *item)
{
    const struct trace_launch *launch = trace_as_launch(item);
    const struct tape_item *last =
        r->tape.count ? &r->tape.items[r->tape.count - 1] : NULL;
    struct tape_item made = {.kind = TAPE_ZERO};

    if (r->phase == TRACE_PHASE_BACKWARD || r->phase == TRACE_PHASE_OPTIMIZER)
        return;
    switch (filling_read(r, launch->name)) {
    case FILLS_ONE:
        made.elements = launch->a;
        if (!made.elements || (last && last->kind == TAPE_CALL &&
                               last->elements == made.elements))
            return;
        break;
    case FILLS_LIST:
        break;
    default:
        return;
    }
    made.op.index = r->ordinal;
    made.op.time_ns = item->head.time_ns;
    tape_add(&r->tape, &made);
}

static void on_storage(struct tape_notes *r, const struct trace_item *item)
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
    } else if (category == TRACE_CATEGORY_GRADIENT) {
        block->holds |= TAPE_GRADIENT;
        block->owner = (uint32_t)storage->module;
    } else if (category == TRACE_CATEGORY_OPTIMIZER) {
        block->holds |= TAPE_STATE;
        if (storage->element_bytes == 4)
            block->holds |= TAPE_FP32_STATE;
        if (storage->element_bytes == 4 &&
            text_begins(trace_names_get(r->names, storage->name),
                        "exp_avg of "))
            block->holds |= TAPE_EXP_AVG;
    }
}

static void on_output(struct tape_notes *r, const struct trace_output *output)
{
    struct tape_item *block = block_find(r, output->address);

    if (block)
        block->output_of = (uint32_t)output->module;
}

static void on_input(struct tape_notes *r, const struct trace_input *input)
{
    struct tape_item *block = block_find(r, input->address);

    if (block)
        block->input_of = (uint32_t)input->module;
}

/* It follows the module's TAPE_ENTER. */
static void on_batch(struct tape_notes *r, const struct trace_batch *batch)
{
    size_t i = r->tape.count;

    while (batch->learns == TRACE_LEARNS_IDLE && i-- > 0)
        if (r->tape.items[i].kind == TAPE_ENTER) {
            r->tape.items[i].idle = r->tape.items[i].module == batch->module;
            return;
        }
}

static void record_take(struct tape_notes *r, const struct trace_item *item)
{
    switch ((enum trace_kind)item->head.kind) {
    case TRACE_BLOCK_ALLOC:
        on_block_alloc(r, item);
        break;
    case TRACE_MODULE:
        on_module(r, item);
        break;
    case TRACE_MODULE_ENTER:
        mark_item(r, item, TAPE_ENTER);
        break;
    case TRACE_MODULE_LEAVE:
        mark_item(r, item, TAPE_LEAVE);
        break;
    case TRACE_PHASE:
        mark_item(r, item, TAPE_PHASE);
        break;
    case TRACE_STORAGE:
        on_storage(r, item);
        break;
    case TRACE_LAUNCH:
        on_launch(r, item);
        break;
    case TRACE_BATCH:
        on_batch(r, trace_as_batch(item));
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

static void notes_take(void *context, const struct trace_item *item,
                       const struct trace_now *now)
{
    struct tape_notes *r = context;

    if (r->tape.count >= r->limit) {
        r->tape.cut = true;
        return;
    }
    r->names = now->names;
    r->ordinal = now->ordinal;
    record_take(r, item);
}

struct tape_notes *tape_notes_create(size_t limit)
{
    struct tape_notes *notes = xcalloc(1, sizeof *notes);

    notes->limit = limit;
    notes->tape.modules = xcalloc(1, sizeof *notes->tape.modules);
    return notes;
}

struct trace_listener tape_notes_listener(struct tape_notes *notes)
{
    return (struct trace_listener){.take = notes_take, .context = notes};
}

void tape_notes_destroy(struct tape_notes *notes)
{
    if (!notes)
        return;
    map_fini(&notes->blocks);
    map_fini(&notes->kernels);
    tape_fini(&notes->tape);
    free(notes);
}

/* Adds the marks before the record INDEX, from the note *AT on. Returns what
 * is noted of that record; NULL: nothing. */
static const struct tape_item *marks_add(struct tape *tape,
                                         const struct tape *notes, size_t *at,
                                         uint64_t index)
{
    for (; *at < notes->count && notes->items[*at].op.index < index; ++*at)
        if (notes->items[*at].kind != TAPE_CALL)
            tape_add(tape, &notes->items[*at]);
    return *at < notes->count && notes->items[*at].op.index == index &&
                   notes->items[*at].kind == TAPE_CALL
               ? &notes->items[(*at)++]
               : NULL;
}

int tape_make(struct tape *tape, struct tape_notes *notes,
              const struct replay_source *source, struct err *err)
{
    struct replay_op op;
    size_t at = 0;
    int more = source->rewind(source->context, err);

    *tape = (struct tape){.name = source->name,
                          .modules = notes->tape.modules,
                          .cut = notes->tape.cut};
    notes->tape.modules = NULL;
    module_table_count(tape->modules);
    while (more >= 0 && (more = source->next(source->context, &op, err)) > 0 &&
           tape->count < notes->limit) {
        const struct tape_item *note =
            marks_add(tape, &notes->tape, &at, op.index);
        struct tape_item item =
            note ? *note : (struct tape_item){.kind = TAPE_CALL};

        item.op = op;
        tape_add(tape, &item);
    }
    if (!more)
        marks_add(tape, &notes->tape, &at, UINT64_MAX);
    if (tape->count > notes->limit)
        tape->count = notes->limit;
    tape->cut |= more > 0;
    if (more < 0)
        tape_fini(tape);
    return more < 0 ? -1 : 0;
}

int tape_read(struct tape *tape, const char *path,
              const struct replay_source *source, size_t limit, struct err *err)
{
    struct tape_notes *notes = tape_notes_create(limit);
    const struct trace_listener listener = tape_notes_listener(notes);
    int rc = trace_play_file(path, &listener, err);

    if (!rc)
        rc = tape_make(tape, notes, source, err);
    tape_notes_destroy(notes);
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

void tape_add_call(struct tape *tape, const struct tape_item *taken,
                   const struct tape_item *at, enum replay_kind kind,
                   uint64_t address)
{
    struct tape_item item = *taken;

    item.op.index = at->op.index;
    item.op.time_ns = at->op.time_ns;
    item.op.kind = kind;
    item.op.deferred = false;
    item.op.address = address;
    tape_add(tape, &item);
}

uint32_t *tape_pairs(const struct tape *tape)
{
    uint32_t *pairs = xcalloc(tape->count + 1, sizeof *pairs);
    struct map live = {0};

    for (uint32_t i = 0; i < tape->count; i++) {
        const struct tape_item *item = &tape->items[i];
        uint64_t address = item->op.address;
        bool done =
            item->kind == TAPE_CALL && item->op.kind == REPLAY_FREE_DONE;

        pairs[i] = TAPE_NONE;
        if (tape_item_is_taken(item))
            map_put(&live, address, (void *)(uintptr_t)(i + 1));
        if (!done && !tape_item_is_freed(item))
            continue;
        uintptr_t place = (uintptr_t)map_get(&live, address);
        if (!place)
            continue;
        pairs[i] = (uint32_t)(place - 1);
        if (!done)
            pairs[place - 1] = i;
        if (done || !item->op.deferred)
            map_take(&live, address);
    }
    map_fini(&live);
    return pairs;
}

static int next_op(void *context, struct replay_op *op, struct err *err)
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

static int begin_again(void *context, struct err *err)
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
                                          .next = next_op,
                                          .rewind = begin_again,
                                          .tells_refusals = true};
    return &tape->source;
}
