/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/collate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/attribution/stack_text.h"

#define PLACE_CHARS 400

/* ncclDataType_t */
static const char *const types[] = {
    "int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
    "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};

/* What each means on a cluster. */
static const struct {
    const char *name, *means;
} faults[COMM_FAULTS] = {
    [COMM_MISSING] = {"missing", "deadlock"},
    [COMM_ORDER] = {"order", "deadlock or wrong data"},
    [COMM_SIZE] = {"size", "deadlock or wrong data"},
    [COMM_TYPE] = {"type", "wrong data"},
    [COMM_OPERATION] = {"operation", "wrong data"},
    [COMM_ROOT] = {"root", "deadlock or wrong data"},
    [COMM_ENDLESS] = {"endless", "deadlock"},
    [COMM_ENDED] = {"ended", "ended"},
};

const char *comm_fault_name(enum comm_fault fault)
{
    return faults[fault].name;
}

static uint32_t world_rank(const struct comm_log *log, uint32_t rank)
{
    return log->world > 1 ? log->rank : rank;
}

/* " in model.layers.3 at train.py:31" or, where no stack is known, " in
 * model.layers.3 after aten::linear": the operator that allocated last */
static void place_write(const struct comm_log *log,
                        const struct comm_call *call, char *text, size_t size)
{
    const char *operator= trace_names_get(&log->names, call->operator);
    char line[PLACE_CHARS / 2];
    char *module = call->module && call->module < log->modules.count
                       ? module_table_title(&log->modules, call->module)
                       : NULL;

    stack_line(trace_names_get(&log->names, call->stack), line, sizeof line);
    const char *where = *line ? line : operator;
    snprintf(text, size, "%s%s%s%s", module ? " in " : "",
             module ? module : "", *line    ? " at "
                                   : *where ? " after "
                                            : "",
             where);
    free(module);
}

/* "ncclAllReduce of 4194304 bytes, float32, in ..." */
static void call_write(const struct comm_log *log, uint32_t index, char *text,
                       size_t size)
{
    const struct comm_call *call = &log->calls[index];
    char place[PLACE_CHARS];

    place_write(log, call, place, sizeof place);
    snprintf(text, size, "%s of %" PRIu64 " bytes, %s%s",
             trace_names_get(&log->names, call->name), call->bytes,
             call->type < sizeof types / sizeof *types ? types[call->type]
                                                       : "another type",
             place);
}

static const char *fault_words(enum comm_fault fault)
{
    static const char *const texts[COMM_FAULTS] = {
        [COMM_ORDER] = "calls another one",
        [COMM_SIZE] = "has another size",
        [COMM_TYPE] = "has another type",
        [COMM_OPERATION] = "has another reduction",
        [COMM_ROOT] = "has another root",
    };

    return texts[fault];
}

/* The other rank, of the world; COMM_NONE: not known. */
static uint32_t other_of(const struct comm_mismatch *m,
                         const struct comm_log *const *logs)
{
    return m->other == COMM_NONE ? COMM_NONE
                                 : world_rank(logs[m->other], m->other_rank);
}

static char *text_make(const struct comm_mismatch *m,
                       const struct comm_log *const *logs)
{
    const struct comm_log *log = logs[m->log];
    uint32_t rank = world_rank(log, m->rank);
    uint32_t other_rank = other_of(m, logs);
    uint32_t ranks = log->comms[log->calls[m->call].comm].ranks;
    char one[2 * PLACE_CHARS], two[2 * PLACE_CHARS];

    call_write(log, m->call, one, sizeof one);
    if (m->fault == COMM_MISSING && other_rank == COMM_NONE)
        return xasprintf("%s: rank %" PRIu32 " calls %s; of the %" PRIu32
                         " ranks of its communicator not all make it",
                         faults[m->fault].means, rank, one, ranks);
    if (m->fault == COMM_MISSING)
        return xasprintf("%s: call %" PRIu64 " on a communicator of %" PRIu32
                         " ranks: rank %" PRIu32 " calls %s; rank %" PRIu32
                         " never does",
                         faults[m->fault].means, m->sequence, ranks, rank, one,
                         other_rank);
    call_write(logs[m->other], m->other_call, two, sizeof two);
    return xasprintf("%s: call %" PRIu64 " on a communicator of %" PRIu32
                     " ranks: rank %" PRIu32 " calls %s; rank %" PRIu32
                     " %s: %s",
                     faults[m->fault].means, m->sequence, ranks, rank, one,
                     other_rank, fault_words(m->fault), two);
}

static char *stack_copy(const struct comm_log *log, uint32_t call)
{
    const char *stack = trace_names_get(&log->names, log->calls[call].stack);

    return *stack ? xstrdup(stack) : NULL;
}

/* The rank of the world that is PEER in C; COMM_NONE: not known. */
static uint32_t world_peer(const struct comm_log *log, const struct comm *c,
                           uint32_t peer)
{
    if (c->members && peer < c->ranks)
        return c->members[peer];
    return log->world <= 1 || c->ranks == log->world ? peer : COMM_NONE;
}

/* "deadlock: rank 0 waits for ever in ncclSend to rank 1 of 4194304 bytes, ..."
 */
static char *endless_text(const struct comm_log *log, uint32_t call,
                          uint32_t rank, uint32_t peer)
{
    const struct comm_call *made = &log->calls[call];
    char one[2 * PLACE_CHARS], other[64] = "";

    call_write(log, call, one, sizeof one);
    if (peer != COMM_NONE)
        snprintf(other, sizeof other, "; it %s rank %" PRIu32,
                 log->parts[made->part_first].receive ? "receives from"
                                                      : "sends to",
                 peer);
    return xasprintf("%s: rank %" PRIu32 " waits for ever in %s%s",
                     faults[COMM_ENDLESS].means, rank, one, other);
}

static void fault_fini(struct collation_fault *fault)
{
    free(fault->text);
    free(fault->stack);
    free(fault->other_stack);
}

void collation_add_endless(struct collation *c, const struct comm_log *log,
                           uint32_t call)
{
    const struct comm_call *made = &log->calls[call];
    const struct comm *comm = &log->comms[made->comm];
    uint32_t rank = world_rank(log, comm->rank), peer = COMM_NONE;
    uint64_t before = 0;

    if (made->kind == COMM_PAIR)
        peer = world_peer(log, comm, log->parts[made->part_first].peer);
    for (uint32_t i = 0; i < call; i++)
        before += log->calls[i].comm == made->comm;
    xgrow(&c->faults, c->count, &c->capacity, sizeof *c->faults);
    c->faults[c->count++] = (struct collation_fault){
        .fault = COMM_ENDLESS,
        .rank = rank,
        .other_rank = peer,
        .sequence = before,
        .text = endless_text(log, call, rank, peer),
        .stack = stack_copy(log, call),
    };
}

static bool is_wait(const struct collation_fault *fault)
{
    return fault->fault == COMM_MISSING || fault->fault == COMM_ENDLESS ||
           fault->fault == COMM_ENDED;
}

void collation_tell_ended(struct collation *c, const struct comm_log *log)
{
    uint32_t rank = world_rank(log, log->rank);

    for (size_t i = 0; i < c->count; i++) {
        struct collation_fault *fault = &c->faults[i];
        if (!is_wait(fault) || fault->fault == COMM_ENDED ||
            fault->other_rank != rank)
            continue;
        char *text = xasprintf(
            "rank %" PRIu32 " ended with status 0 while rank %" PRIu32
            " waits for it%s", rank, fault->rank,
            fault->text + strlen(faults[fault->fault].means));
        free(fault->text);
        fault->text = text;
        fault->fault = COMM_ENDED;
    }
}

void collation_drop_waits(struct collation *c, uint32_t rank)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->count; i++) {
        struct collation_fault *fault = &c->faults[i];
        if (is_wait(fault) && (fault->other_rank == rank ||
                               fault->other_rank == COMM_NONE))
            fault_fini(fault);
        else
            c->faults[kept++] = *fault;
    }
    c->count = kept;
}

bool collation_has_missing(const struct collation *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->faults[i].fault == COMM_MISSING ||
            c->faults[i].fault == COMM_ENDED)
            return true;
    return false;
}

struct collation *collation_create(const struct comm_job *job,
                                   const struct comm_log *const *logs)
{
    struct collation *c = xcalloc(1, sizeof *c);

    c->count = job->mismatch_count < COMM_MISMATCHES ? job->mismatch_count
                                                     : COMM_MISMATCHES;
    c->dropped = job->mismatch_count - c->count;
    c->capacity = c->count + 1;
    c->faults = xcalloc(c->capacity, sizeof *c->faults);
    for (size_t i = 0; i < c->count; i++) {
        const struct comm_mismatch *m = &job->mismatches[i];
        c->faults[i] = (struct collation_fault){
            .fault = m->fault,
            .rank = world_rank(logs[m->log], m->rank),
            .other_rank = other_of(m, logs),
            .sequence = m->sequence,
            .text = text_make(m, logs),
            .stack = stack_copy(logs[m->log], m->call),
            .other_stack = m->other_call == COMM_NONE
                               ? NULL
                               : stack_copy(logs[m->other], m->other_call),
        };
    }
    return c;
}

void collation_destroy(struct collation *c)
{
    for (size_t i = 0; c && i < c->count; i++)
        fault_fini(&c->faults[i]);
    if (c)
        free(c->faults);
    free(c);
}
