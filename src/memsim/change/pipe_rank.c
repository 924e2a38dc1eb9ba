/* SPDX-License-Identifier: Apache-2.0
 * Around an exchange PyTorch's ProcessGroupNCCL makes these calls:
 *
 *   for each send or receive: record an event on the compute stream, let NCCL's
 *   stream wait for it, ncclSend or ncclRecv; then record an event on NCCL's
 *   stream. The compute stream waits for that where the schedule does. */
#include "memsim/change/pipe_rank.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/range.h"
#include "common/base/xmalloc.h"
#include "memsim/change/pipe_adds.h"

/* Handles and names that no recording has: above what it has of names, and
 * where no address is. */
#define HANDLE_COMMUNICATOR UINT64_C(0x10)
#define HANDLE_STREAM       UINT64_C(0x20)
#define HANDLE_READY        UINT64_C(0x30)
#define HANDLE_RELEASED     UINT64_C(0x40)
#define HANDLE_DONE         UINT64_C(0x1000) /* + the exchange */
#define ID_BYTES            24               /* what is unique of an id */
#define NCCL_BYTES          1                /* ncclUint8 */

struct writing {
    const struct pipe_rank *job;
    struct records *records;
    struct rewrite_piece *pieces;
    size_t count, capacity;
    uint64_t send_name, receive_name, add_names; /* the first of three */
    uint64_t group;                              /* of the last exchange */
};

static void piece_add(struct writing *g, size_t from, size_t until, bool once)
{
    if (from >= until)
        return;
    xgrow(&g->pieces, g->count, &g->capacity, sizeof *g->pieces);
    g->pieces[g->count++] = (struct rewrite_piece){from, until, once};
}

struct adding {
    enum trace_kind kind;
    uint32_t thread;
    const uint64_t *fields;
    size_t field_count;
    const char *text;
    size_t text_bytes;
};

/* Adds a record, and a piece with it. */
static void record_put(struct writing *g, const struct adding *a)
{
    uint64_t fields[TRACE_FIELDS_MAX] = {0};
    const struct record like = {.kind = a->kind,
                                .thread = a->thread,
                                .field_count = (uint32_t)a->field_count,
                                .text_bytes = (uint32_t)a->text_bytes};

    memcpy(fields, a->fields, a->field_count * sizeof *fields);
    size_t at = records_add(g->records, &like, fields, a->text);
    piece_add(g, at, at + 1, true);
}

#define PUT(g, kind, by, ...)                                                  \
    record_put(g, &(struct adding){TRACE_##kind, by,                           \
                                   TRACE_WORDS(kind, __VA_ARGS__),             \
                                   TRACE_WORD_COUNT(kind), "", 0})

/* --- what is before the steps --------------------------------------------- */

/* The rank's own place in the world; returns the record that had it. */
static size_t put_process(struct writing *g)
{
    const struct pipe_rank *j = g->job;
    const struct records *r = g->records;
    size_t at = 0;

    while (at < r->count && r->all[at].kind != TRACE_PROCESS)
        at++;
    if (at == r->count)
        return at;
    const struct record *record = &r->all[at];
    char *text = xmalloc(record->text_bytes + 1);
    struct trace_process process =
        *(const struct trace_process *)records_fields(r, record);
    process.rank = j->rank;
    process.local_rank = j->rank % j->node_ranks;
    process.world_size = j->split->ranks;
    process.local_world_size = r->imported ? j->node_gpus : j->node_ranks;
    memcpy(text, records_text(r, record), record->text_bytes);
    record_put(g, &(struct adding){
                      TRACE_PROCESS, record->thread, (const uint64_t *)&process,
                      TRACE_WORD_COUNT(PROCESS), text, record->text_bytes});
    free(text);
    return at;
}

/* All names and modules, which pieces leave out; then those of the sends and
 * receives. */
static void put_names(struct writing *g, size_t count)
{
    const char *const names[] = {"ncclSend", "ncclRecv", pipe_adds_name(2),
                                 pipe_adds_name(4), pipe_adds_name(8)};
    uint64_t last = 0;

    for (size_t i = 0; i < count; i++) {
        const struct record *record = &g->records->all[i];
        if (record->kind == TRACE_NAME || record->kind == TRACE_MODULE)
            piece_add(g, i, i + 1, true);
        if (record->kind != TRACE_NAME)
            continue;
        const struct trace_name *name =
            (const struct trace_name *)records_fields(g->records, record);
        last = name->name > last ? name->name : last;
    }
    g->send_name = last + 1;
    g->receive_name = last + 2;
    g->add_names = last + 3;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        record_put(g, &(struct adding){TRACE_NAME, g->job->cut->thread,
                                       TRACE_WORDS(NAME, .name = last + 1 + i),
                                       TRACE_WORD_COUNT(NAME), names[i],
                                       strlen(names[i])});
}

static void put_communicator(struct writing *g)
{
    static const char id[ID_BYTES] = "memsim: stages";
    const struct pipe_cut *c = g->job->cut;
    const struct range members = {0, g->job->split->ranks,
                                  (int32_t)g->job->apart};
    bool spread = g->records->imported;
    char text[ID_BYTES + sizeof members];

    memcpy(text, id, ID_BYTES);
    memcpy(text + ID_BYTES, &members, sizeof members);
    record_put(g,
               &(struct adding){TRACE_COMMUNICATOR, c->thread,
                                TRACE_WORDS(COMMUNICATOR, .device = c->device,
                                            .communicator = HANDLE_COMMUNICATOR,
                                            .rank = g->job->rank,
                                            .ranks = g->job->split->ranks,
                                            .ranges = spread),
                                TRACE_WORD_COUNT(COMMUNICATOR), text,
                                spread ? sizeof text : ID_BYTES});
    PUT(g, STREAM_CREATE, c->thread, .device = c->device,
        .stream = HANDLE_STREAM, .flags = 1);
}

/* A group of a profile is one of each stage: "tensor" of the second of stages
 * that are 2 apart becomes "tensor stage 1", and [0, 1] becomes [2, 3]. */
static void group_move(struct writing *g, size_t index)
{
    const struct record like = g->records->all[index];
    uint64_t fields[TRACE_FIELDS_MAX];
    char text[ID_BYTES + sizeof(struct range)], id[2 * ID_BYTES];
    const char *own = records_text(g->records, &like);
    struct range range;

    if (like.text_bytes != sizeof text)
        return;
    int length = snprintf(id, sizeof id, "%.*s stage %" PRIu32,
                          (int)strcspn(own, " "), own, g->job->rank);
    memset(text, ' ', ID_BYTES);
    memcpy(text, id, length < ID_BYTES ? (size_t)length : ID_BYTES);
    memcpy(&range, own + ID_BYTES, sizeof range);
    range.first += g->job->rank * g->job->apart;
    memcpy(text + ID_BYTES, &range, sizeof range);
    memcpy(fields, records_fields(g->records, &like), sizeof fields);
    size_t first = records_add(g->records, &like, fields, text);
    rewrite_add(g->job->rewrite, &(struct edit){EDIT_REPLACE, index, index + 1,
                                                1, first, 0, 0});
}

static void groups_move(struct writing *g, size_t count)
{
    for (size_t i = 0; g->records->imported && i < count; i++)
        if (g->records->all[i].kind == TRACE_COMMUNICATOR)
            group_move(g, i);
}

static void put_start(struct writing *g, size_t count)
{
    size_t end = g->records->steps.steps[0].first;
    size_t process = put_process(g);

    put_names(g, count);
    put_communicator(g);
    groups_move(g, count);
    piece_add(g, 0, process < end ? process : end, false);
    piece_add(g, process + 1, end, false);
}

/* --- computing ------------------------------------------------------------ */

/* The modules that are open at record AT of PASS, the outermost first; *COUNT
 * of them, to be freed. */
static uint64_t *open_at(const struct writing *g, const struct pipe_pass *p,
                         size_t at, size_t *count)
{
    uint64_t *open = NULL;
    size_t capacity = 0;

    *count = 0;
    for (size_t i = p->from; i < at; i++) {
        const struct record *record = &g->records->all[i];
        const uint64_t *f = records_fields(g->records, record);
        if (record->kind == TRACE_MODULE_LEAVE && *count)
            --*count;
        if (record->kind != TRACE_MODULE_ENTER)
            continue;
        xgrow(&open, *count, &capacity, sizeof *open);
        open[(*count)++] = ((const struct trace_module_enter *)f)->module;
    }
    return open;
}

/* RANGE of PASS, within the modules that are open where it begins. */
static void put_within(struct writing *g, const struct pipe_pass *p,
                       const struct pipe_range *range)
{
    size_t before, behind;
    uint64_t *enter = open_at(g, p, range->from, &before);
    uint64_t *leave = open_at(g, p, range->until, &behind);
    uint32_t thread = g->records->all[range->from].thread;

    for (size_t i = 0; i < before; i++)
        PUT(g, MODULE_ENTER, thread, .module = enter[i]);
    piece_add(g, range->from, range->until, false);
    while (behind-- > 0)
        PUT(g, MODULE_LEAVE, thread, .module = leave[behind]);
    free(enter);
    free(leave);
}

/* The gradients of STAGE's parameters are added to those that are there. */
static void put_adds(struct writing *g, uint32_t stage, uint32_t thread)
{
    const struct pipe_rank *j = g->job;

    for (size_t i = g->records->parameter_count; i-- > 0;) {
        const struct parameter *p = &g->records->parameters[i];
        uint64_t of_bytes = p->element_bytes / 4; /* 2, 4, 8: 0, 1, 2 */
        struct trace_launch launch =
            pipe_adds_launch(p, g->add_names + of_bytes);
        if (j->adds_stage[i] != stage)
            continue;
        launch.device = j->cut->device;
        launch.stream = j->cut->stream;
        record_put(g, &(struct adding){TRACE_LAUNCH, thread,
                                       (const uint64_t *)&launch,
                                       TRACE_WORD_COUNT(LAUNCH), "", 0});
    }
}

static void put_pass(struct writing *g, const struct pipe_microbatch *m,
                     const struct pipe_action *a)
{
    const struct pipe_cut *c = g->job->cut;
    const struct pipe_split *s = g->job->split;
    uint32_t first = s->first[a->stage], end = s->first[a->stage + 1];
    bool backward = a->what == PIPE_BACKWARD;
    const struct pipe_pass *p = backward ? &m->backward : &m->forward;
    struct pipe_range range = backward ? pipe_cut_backward(c, p, first, end)
                                       : pipe_cut_forward(c, p, first, end);

    if (!backward && (!a->stage || a->stage + 1 == s->stages))
        piece_add(g, m->feed_from, m->feed_until, false);
    if (range.from >= range.until)
        return;
    if (!g->records->imported)
        PUT(g, PHASE, g->records->all[range.from].thread,
            .phase = backward ? TRACE_PHASE_BACKWARD : TRACE_PHASE_FORWARD);
    put_within(g, p, &range);
    if (backward && a->microbatch && g->job->adds_stage)
        put_adds(g, a->stage, g->records->all[range.from].thread);
}

/* --- sending and receiving ------------------------------------------------ */

static void put_transfer(struct writing *g, const struct pipe_transfer *t)
{
    const struct pipe_cut *c = g->job->cut;
    uint32_t behind = g->job->split->first[t->boundary + 1];
    uint64_t bytes = c->boundaries[behind - 1].bytes;

    PUT(g, EVENT_RECORD, c->thread, .device = c->device, .stream = c->stream,
        .event = HANDLE_READY);
    PUT(g, STREAM_WAIT, c->thread, .device = c->device, .stream = HANDLE_STREAM,
        .event = HANDLE_READY);
    PUT(g, COLLECTIVE, c->thread,
        .name = t->receive ? g->receive_name : g->send_name,
        .device = c->device, .stream = HANDLE_STREAM,
        .communicator = HANDLE_COMMUNICATOR, .rank = g->job->rank,
        .ranks = g->job->split->ranks, .count = bytes, .type = NCCL_BYTES,
        .root = t->peer, .bytes = bytes, .send = !t->receive,
        .receive = t->receive, .group = g->group);
}

static void put_exchange(struct writing *g, const struct pipe_action *a)
{
    const struct pipe_cut *c = g->job->cut;

    g->group++;
    for (uint32_t i = 0; i < a->part_count; i++)
        put_transfer(g, &a->parts[i]);
    PUT(g, EVENT_RECORD, c->thread, .device = c->device,
        .stream = HANDLE_STREAM, .event = HANDLE_DONE + a->exchange);
}

/* --- steps ---------------------------------------------------------------- */

static void put_step(struct writing *g, const struct pipe_step *step)
{
    const struct pipe_cut *c = g->job->cut;
    const struct pipe_list *list = g->job->list;

    piece_add(g, step->head_from, step->head_until, false);
    for (size_t i = 0; i < list->count; i++) {
        const struct pipe_action *a = &list->all[i];
        size_t m =
            a->microbatch < step->count ? a->microbatch : step->count - 1;
        if (a->what == PIPE_EXCHANGE)
            put_exchange(g, a);
        else if (a->what == PIPE_WAIT)
            PUT(g, STREAM_WAIT, c->thread, .device = c->device,
                .stream = c->stream, .event = HANDLE_DONE + a->exchange);
        else if (a->what == PIPE_RELEASE)
            PUT(g, EVENT_RECORD, c->thread, .device = c->device,
                .stream = HANDLE_STREAM, .event = HANDLE_RELEASED);
        else
            put_pass(g, &step->all[m], a);
    }
    piece_add(g, step->after_from, step->after_until, false);
}

int pipe_rank_write(const struct pipe_rank *job, const char *path,
                    struct err *err)
{
    struct writing g = {.job = job, .records = job->rewrite->records};
    const struct step_list *steps = &g.records->steps;
    size_t count = job->rewrite->record_count;

    put_start(&g, count);
    for (size_t i = 0; i < steps->count; i++)
        if (job->cut->steps[i].cut)
            put_step(&g, &job->cut->steps[i]);
    if (!g.records->imported)
        piece_add(&g, steps->steps[steps->count - 1].end, count, false);
    int rc = rewrite_write_pieces(job->rewrite, g.pieces, g.count, path, err);
    free(g.pieces);
    return rc;
}
