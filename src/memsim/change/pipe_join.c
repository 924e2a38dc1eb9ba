/* SPDX-License-Identifier: Apache-2.0
 * All recordings become one list of records: names and modules get numbers of
 * their own, layers those behind the layers of the ranks before, and what a
 * pipeline adds is left out. Then pieces of that list are written. */
#include "memsim/change/pipe_join.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/xmalloc.h"
#include "memsim/change/layer_after.h"
#include "memsim/change/layer_modules.h"
#include "memsim/change/pipe_passes.h"
#include "memsim/change/pipe_split.h"
#include "memsim/change/side.h"

#define ADDRESS UINT64_C(0x600000000000) /* of what is put into blocks */

/* One rank's recording. */
struct source {
    struct records records;
    struct pipe_parts *parts; /* of each step */
    size_t *moved;            /* of each record: where it is in the list */
    uint64_t names, modules;  /* what its numbers are moved by */
    long shift;               /* what its layers' are */
};

struct joining {
    struct source sources[PIPE_RANKS_MAX];
    size_t count, steps; /* of each */
    const char *prefix;  /* of the layers' list */
    struct layer_modules modules;
    struct records list;
    uint64_t name, module; /* the last ones of the list */
    uint64_t address;
    struct rewrite_piece *pieces;
    size_t piece_count, piece_capacity;
};

/* --- what is read --------------------------------------------------------- */

static int pipe_refuse(const char *why, struct err *err)
{
    return err_set(err,
                   "--change: stages cannot be made of the recordings of "
                   "these ranks: %s. Record the whole model on one GPU, or "
                   "run the changed script: neither needs a GPU",
                   why);
}

/* Only sends and receives, of the pipeline, may be in the steps. */
static int check_pairs(const struct source *s, struct err *err)
{
    const struct records *r = &s->records;

    for (size_t i = 0; i < r->count; i++) {
        const struct trace_collective *c =
            (const struct trace_collective *)records_fields(r, &r->all[i]);
        if (r->all[i].kind == TRACE_COLLECTIVE && r->steps.count &&
            i >= r->steps.steps[0].first && !c->group)
            return pipe_refuse("they call collectives, so that the job is more "
                               "than a pipeline",
                               err);
        if (r->all[i].kind == TRACE_GRAPH_LAUNCH)
            return pipe_refuse("they launch CUDA graphs", err);
    }
    return 0;
}

/* The rank that R is of; COUNT: of another job. */
static size_t rank_of(const struct records *r, size_t count)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct trace_process *p =
            (const struct trace_process *)records_fields(r, &r->all[i]);
        if (r->all[i].kind == TRACE_PROCESS)
            return p->world_size == count && p->rank < count ? p->rank : count;
    }
    return count;
}

/* Reads PATH into the place of its rank. */
static int source_read(struct joining *j, const char *path, struct err *err)
{
    struct records r;
    bool several = false;

    if (records_read(&r, path, err))
        return -1;
    size_t rank = rank_of(&r, j->count);
    if (rank == j->count || j->sources[rank].parts) {
        records_fini(&r);
        return pipe_refuse("they are not one of each rank of the job", err);
    }
    struct source *s = &j->sources[rank];
    s->records = r;
    s->parts = xcalloc(r.steps.count + 1, sizeof *s->parts);
    for (size_t k = 0; k < r.steps.count; k++) {
        pipe_parts_find(&s->parts[k], &s->records, k);
        several |= s->parts[k].several;
    }
    if (several)
        return pipe_refuse("a rank has several stages, or several models", err);
    if (r.imported)
        return pipe_refuse("profiles name no modules", err);
    if (r.steps.rule != STEP_OPTIMIZER)
        return pipe_refuse("an optimizer ends no step", err);
    return check_pairs(s, err);
}

static int read_all(struct joining *j, const char *const *paths,
                    const char *prefix, struct err *err)
{
    j->steps = SIZE_MAX;
    for (size_t i = 0; i < j->count; i++)
        if (source_read(j, paths[i], err))
            return -1;
    for (size_t i = 0; i < j->count; i++)
        if (j->sources[i].records.steps.count < j->steps)
            j->steps = j->sources[i].records.steps.count;
    for (size_t i = 0; i < j->count && !j->prefix; i++) {
        err_clear(err);
        if (!layer_modules_find(&j->modules, &j->sources[i].records, prefix,
                                err))
            j->prefix = j->modules.prefix;
    }
    return j->prefix ? 0 : -1;
}

/* --- layers --------------------------------------------------------------- */

/* The number behind the list's name in TEXT; -1: there is none. *REST is what
 * comes after it. */
static long layer_of(const struct joining *j, const char *text,
                     const char **rest)
{
    size_t length = strlen(j->prefix);
    char *end;

    if (strncmp(text, j->prefix, length) || text[length] != '.' ||
        text[length + 1] < '0' || text[length + 1] > '9')
        return -1;
    long layer = strtol(text + length + 1, &end, 10);
    *rest = end;
    return (*end == '.' || !*end) && layer < PIPE_STAGES_MAX ? layer : -1;
}

/* Of ranks whose layers begin with 0 they come behind those before; others'
 * have numbers of the whole model. */
static int layers_shift(struct joining *j, struct err *err)
{
    long before = 0;

    for (size_t i = 0; i < j->count; i++) {
        const struct records *r = &j->sources[i].records;
        long least = PIPE_STAGES_MAX, most = -1;
        for (size_t k = 0; k < r->module_count; k++) {
            const char *rest;
            long layer = layer_of(
                j, trace_names_get(&r->names, r->modules[k].name), &rest);
            if (layer < 0)
                continue;
            least = layer < least ? layer : least;
            most = layer > most ? layer : most;
        }
        if (most < 0 || (least && least != before))
            return pipe_refuse(
                "the layers of one are not behind those of the rank "
                "before",
                err);
        j->sources[i].shift = before - least;
        before += most - least + 1;
    }
    return 0;
}

/* --- the list ------------------------------------------------------------- */

/* The thread that calls the forward is the first one of each rank; autograd's
 * become one. */
static uint32_t thread_in_list(const struct record *record)
{
    return record->thread != 0;
}

static void move_id(uint64_t *id, uint64_t by)
{
    *id += *id ? by : 0;
}

/* Moves the numbers in the fields F of a record of S; all work is on GPU 0. */
static void fields_move(const struct source *s, enum trace_kind kind,
                        uint64_t *f)
{
    struct trace_block_alloc *a = (struct trace_block_alloc *)f;

    if ((kind >= TRACE_LAUNCH && kind <= TRACE_LIBRARY_CALL) ||
        kind == TRACE_GUESS) {
        ((struct trace_work *)f)->device = 0;
        move_id(&((struct trace_work *)f)->name, s->names);
    }
    switch (kind) {
    case TRACE_BLOCK_ALLOC:
        a->device = a->range = a->stack = a->allocated_bytes = 0;
        move_id(&a->module, s->modules);
        move_id(&a->operator, s->names);
        move_id(&a->shape, s->names);
        break;
    case TRACE_NAME:
        move_id(&((struct trace_name *)f)->name, s->names);
        break;
    case TRACE_MODULE:
        move_id(&((struct trace_module *)f)->module, s->modules);
        move_id(&((struct trace_module *)f)->root, s->modules);
        move_id(&((struct trace_module *)f)->name, s->names);
        break;
    case TRACE_MODULE_ENTER:
    case TRACE_MODULE_LEAVE:
    case TRACE_BATCH:
        move_id(&((struct trace_module_enter *)f)->module, s->modules);
        break;
    case TRACE_COPY:
    case TRACE_SET:
    case TRACE_SYNC_DEVICE:
    case TRACE_SYNC_STREAM:
        f[0] = 0; /* the GPU */
        break;
    default:
        break;
    }
}

/* What of the rank INDEX is kept: what says who it is and that which steps do
 * only of the first one. */
static bool is_kept(enum trace_kind kind, size_t index)
{
    static const enum trace_kind kinds[] = {
        TRACE_NAME,         TRACE_MODULE,      TRACE_MODULE_ENTER,
        TRACE_MODULE_LEAVE, TRACE_LAUNCH,      TRACE_GEMM,
        TRACE_CONVOLUTION,  TRACE_ATTENTION,   TRACE_LIBRARY_CALL,
        TRACE_GUESS,        TRACE_COPY,        TRACE_SET,
        TRACE_BLOCK_ALLOC,  TRACE_PHASE,       TRACE_PROCESS,
        TRACE_DEVICE,       TRACE_SETTING,     TRACE_BATCH,
        TRACE_SYNC_DEVICE,  TRACE_SYNC_STREAM,
    };
    const size_t of_all = 14; /* kinds; the rest of the first rank */
    size_t count = index ? of_all : sizeof kinds / sizeof *kinds;

    for (size_t i = 0; i < count; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

static void record_add(struct joining *j, enum trace_kind kind, uint32_t thread,
                       const uint64_t *fields, size_t count)
{
    uint64_t all[TRACE_FIELDS_MAX] = {0};
    const struct record like = {
        .kind = kind,
        .thread = thread,
        .field_count = (uint32_t)count,
        .time_ns = j->list.count ? j->list.all[j->list.count - 1].time_ns : 0};

    memcpy(all, fields, count * sizeof *all);
    records_add(&j->list, &like, all, "");
}

#define ADD(j, kind, by, ...)                                                  \
    record_add(j, TRACE_##kind, by, TRACE_WORDS(kind, __VA_ARGS__),            \
               TRACE_WORD_COUNT(kind))

/* A block that holds BYTES; returns its address. */
static uint64_t add_block(struct joining *j, uint64_t bytes, uint32_t thread)
{
    j->address += 1 << 20;
    ADD(j, BLOCK_ALLOC, thread, .address = j->address, .requested_bytes = bytes,
        .block_bytes = bytes);
    return j->address;
}

/* What modules of S are given and return before its record INDEX. */
static void add_values(struct joining *j, const struct source *s, size_t index)
{
    const struct records *r = &s->records;

    for (size_t i = BISECT(k, r->value_count, r->values[k].at < index);
         i < r->value_count && r->values[i].at == index; i++) {
        const struct module_value *v = &r->values[i];
        uint32_t thread = thread_in_list(&r->all[index]);
        uint64_t address = add_block(j, v->bytes, thread);
        uint64_t module = v->module + s->modules;
        if (v->is_output)
            ADD(j, OUTPUT, thread, .address = address, .module = module);
        else
            ADD(j, INPUT, thread, .address = address, .module = module);
    }
}

/* A name; that of a module in a layer gets the layer's number. */
static void add_name(struct joining *j, const struct source *s,
                     const struct record *record, const uint64_t *fields)
{
    const char *text = records_text(&s->records, record), *rest;
    char *name = xasprintf("%.*s", (int)record->text_bytes, text);
    long layer = layer_of(j, name, &rest);
    char *moved =
        layer < 0 ? xasprintf("%s", name)
                  : xasprintf("%s.%ld%s", j->prefix, layer + s->shift, rest);
    struct record like = *record;

    like.text_bytes = (uint32_t)strlen(moved);
    records_add(&j->list, &like, fields, moved);
    free(moved);
    free(name);
}

static void source_add(struct joining *j, size_t index)
{
    struct source *s = &j->sources[index];
    const struct records *r = &s->records;

    s->names = j->name;
    s->modules = j->module;
    s->moved = xcalloc(r->count + 1, sizeof *s->moved);
    for (size_t i = 0; i < r->count; i++) {
        struct record record = r->all[i];
        uint64_t fields[TRACE_FIELDS_MAX];
        s->moved[i] = j->list.count;
        add_values(j, s, i);
        if (!is_kept(record.kind, index))
            continue;
        record.thread = thread_in_list(&record);
        memcpy(fields, records_fields(r, &record), sizeof fields);
        fields_move(s, record.kind, fields);
        if (record.kind == TRACE_NAME && fields[0] > j->name)
            j->name = fields[0];
        if (record.kind == TRACE_MODULE && fields[0] > j->module)
            j->module = fields[0];
        if (record.kind == TRACE_NAME)
            add_name(j, s, &record, fields);
        else
            records_add(&j->list, &record, fields, records_text(r, &record));
    }
    s->moved[r->count] = j->list.count;
}

/* --- pieces --------------------------------------------------------------- */

static void join_piece(struct joining *j, size_t from, size_t until, bool once)
{
    if (from >= until)
        return;
    xgrow(&j->pieces, j->piece_count, &j->piece_capacity, sizeof *j->pieces);
    j->pieces[j->piece_count++] = (struct rewrite_piece){from, until, once};
}

static void piece_phase(struct joining *j, uint64_t phase, uint32_t thread)
{
    size_t at = j->list.count;

    ADD(j, PHASE, thread, .phase = phase);
    join_piece(j, at, at + 1, true);
}

/* All that names something, and the parameters. */
static void pieces_begin(struct joining *j, size_t count)
{
    for (size_t i = 0; i < count; i++)
        switch (j->list.all[i].kind) {
        case TRACE_PROCESS:
        case TRACE_DEVICE:
        case TRACE_SETTING:
        case TRACE_NAME:
        case TRACE_MODULE:
            join_piece(j, i, i + 1, true);
            break;
        default:
            break;
        }
    for (size_t i = 0; i < j->count; i++) {
        const struct source *s = &j->sources[i];
        for (size_t k = 0; k < s->records.parameter_count; k++) {
            const struct parameter *p = &s->records.parameters[k];
            size_t at = j->list.count;
            uint64_t address = add_block(j, p->elements * p->element_bytes, 0);
            ADD(j, STORAGE, 0, .address = address,
                .module = p->module + s->modules,
                .category = TRACE_CATEGORY_PARAMETER,
                .element_bytes = p->element_bytes);
            join_piece(j, at, at + 2, true);
        }
    }
}

/* The pass of microbatch M of source S in STEP. False: it has none. */
static bool piece_pass(struct joining *j, const struct source *s, size_t step,
                       bool backward, size_t m)
{
    const struct pipe_part *p = pipe_parts_get(&s->parts[step], backward, m);

    if (!p)
        return false;
    piece_phase(j, backward ? TRACE_PHASE_BACKWARD : TRACE_PHASE_FORWARD,
                thread_in_list(&s->records.all[p->from]));
    if (p->lead_from < p->lead_until)
        join_piece(j, s->moved[p->lead_from], s->moved[p->lead_until], false);
    join_piece(j, s->moved[p->from], s->moved[p->until], false);
    return true;
}

/* Do all ranks have M microbatches in STEP? */
static bool has_all(const struct joining *j, size_t step, size_t m)
{
    for (size_t i = 0; i < j->count; i++) {
        const struct pipe_parts *p = &j->sources[i].parts[step];
        if (!m || p->count != 2 * m || !pipe_parts_get(p, false, m - 1) ||
            !pipe_parts_get(p, true, m - 1))
            return false;
    }
    return true;
}

static void pieces_step(struct joining *j, size_t step, size_t m)
{
    const struct source *first = &j->sources[0];

    for (size_t i = 0; i < m; i++) {
        for (size_t s = 0; s < j->count; s++)
            piece_pass(j, &j->sources[s], step, false, i);
        for (size_t s = j->count; s-- > 0;)
            piece_pass(j, &j->sources[s], step, true, i);
    }
    piece_phase(j, TRACE_PHASE_OTHER, 0);
    join_piece(j, first->moved[first->parts[step].end],
               first->moved[first->records.steps.steps[step].end], false);
}

/* --- the optimizer -------------------------------------------------------- */

/* The parameters of all ranks in turn; *COUNT of them, to be freed. */
static struct parameter *parameters_of(const struct joining *j, size_t *count)
{
    struct parameter *all = NULL;
    size_t capacity = 0;

    *count = 0;
    for (size_t i = 0; i < j->count; i++)
        for (size_t k = 0; k < j->sources[i].records.parameter_count; k++) {
            xgrow(&all, *count, &capacity, sizeof *all);
            all[(*count)++] = j->sources[i].records.parameters[k];
        }
    return all;
}

/* Lets the first rank's optimizer have the parameters of all. */
static int after_join(struct joining *j, struct rewrite *w,
                      const struct layer_marks *marks, size_t step,
                      struct err *err)
{
    const struct source *s = &j->sources[0];
    size_t from = s->moved[s->parts[step].end];
    size_t until = s->moved[s->records.steps.steps[step].end];
    struct layer_after after = {
        .rewrite = w,
        .marks = marks,
        .modules = &j->modules,
        .first = BISECT(i, marks->count, marks->ops[i] < from),
        .end = BISECT(i, marks->count, marks->ops[i] < until),
        .warm_up = s->records.steps.steps[step].warm_up};
    struct parameter *all = parameters_of(j, &after.job_count);
    size_t plain = 0;

    after.job = all;
    for (size_t op = after.first; op < after.end; op++) {
        const struct record *record = &j->list.all[marks->ops[op]];
        const struct trace_launch *l =
            (const struct trace_launch *)records_fields(&j->list, record);
        plain += record->kind == TRACE_LAUNCH &&
                 l->shared_bytes_rule >> 32 != TRACE_RULE_FOREACH;
    }
    int rc =
        plain >= s->records.parameter_count
            ? pipe_refuse(
                  "kernels behind their backwards take one parameter after "
                  "the other: an optimizer with foreach=False, or "
                  "gradients that are divided (scale_grads)",
                  err)
            : layer_after_change(&after, err);
    free(all);
    return rc;
}

/* --- the whole ------------------------------------------------------------ */

/* The first rank's steps and parameters as those of the list. */
static void list_describe(struct joining *j)
{
    const struct source *s = &j->sources[0];
    struct records *list = &j->list;

    list->names = s->records.names;
    list->parameters = s->records.parameters;
    list->parameter_count = s->records.parameter_count;
    memcpy(list->torch, s->records.torch, sizeof list->torch);
    list->steps = step_list_copy(&s->records.steps);
    for (size_t i = 0; i < list->steps.count; i++) {
        list->steps.steps[i].first = s->moved[list->steps.steps[i].first];
        list->steps.steps[i].end = s->moved[list->steps.steps[i].end];
    }
}

/* What of the list is borrowed goes with its owner. */
static void list_fini(struct joining *j)
{
    j->list.names = (struct trace_names){{0}};
    j->list.parameters = NULL;
    records_fini(&j->list);
}

static int write_all(struct joining *j, const char *to, struct err *err)
{
    struct layer_marks marks;
    size_t count = j->list.count, found = 0;
    int rc = 0;

    list_describe(j);
    layer_marks_make(&marks, &j->list);
    struct rewrite w = rewrite_of(&j->list, &marks);
    pieces_begin(j, count);
    for (size_t i = 0; !rc && i < j->steps; i++) {
        size_t m = j->sources[0].parts[i].count / 2;
        if (!has_all(j, i, m)) /* the first one also tries the shapes */
            continue;
        rc = after_join(j, &w, &marks, i, err);
        pieces_step(j, i, m);
        found++;
    }
    if (!rc && !found)
        rc = pipe_refuse(
            "no step has as many forwards and backwards, of one stage "
            "each, on all of them",
            err);
    if (!rc)
        rc = rewrite_write_pieces(&w, j->pieces, j->piece_count, to, err);
    free(w.edits);
    layer_marks_fini(&marks);
    list_fini(j);
    return rc;
}

static void source_fini(struct source *s)
{
    for (size_t i = 0; s->parts && i < s->records.steps.count; i++)
        pipe_parts_fini(&s->parts[i]);
    free(s->parts);
    free(s->moved);
    records_fini(&s->records);
}

int pipe_join(const char *const *paths, size_t count, const char *prefix,
              const char *to, struct err *err)
{
    struct joining *j = xcalloc(1, sizeof *j);
    int rc = -1;

    j->count = count;
    j->address = ADDRESS;
    if (count > PIPE_RANKS_MAX) {
        pipe_refuse("they are more than 32", err);
    } else if (!read_all(j, paths, prefix, err) && !layers_shift(j, err)) {
        for (size_t i = 0; i < count; i++)
            source_add(j, i);
        rc = write_all(j, to, err);
    }
    for (size_t i = 0; i < count && i < PIPE_RANKS_MAX; i++)
        source_fini(&j->sources[i]);
    layer_modules_fini(&j->modules);
    free(j->pieces);
    free(j);
    return rc;
}
