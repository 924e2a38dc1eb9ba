/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cluster/collate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

static const char *what(enum comm_fault fault)
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

static char *text_make(const struct comm_mismatch *m,
                       const struct comm_log *const *logs)
{
    const struct comm_log *log = logs[m->log], *other = logs[m->other];
    uint32_t rank = world_rank(log, m->rank);
    uint32_t other_rank = world_rank(other, m->other_rank);
    uint32_t ranks = log->comms[log->calls[m->call].comm].ranks;
    char one[2 * PLACE_CHARS], two[2 * PLACE_CHARS];

    call_write(log, m->call, one, sizeof one);
    if (m->fault == COMM_MISSING)
        return xasprintf("%s: call %" PRIu64 " on a communicator of %" PRIu32
                         " ranks: rank %" PRIu32 " calls %s; rank %" PRIu32
                         " never does",
                         faults[m->fault].means, m->sequence, ranks, rank, one,
                         other_rank);
    call_write(other, m->other_call, two, sizeof two);
    return xasprintf("%s: call %" PRIu64 " on a communicator of %" PRIu32
                     " ranks: rank %" PRIu32 " calls %s; rank %" PRIu32
                     " %s: %s",
                     faults[m->fault].means, m->sequence, ranks, rank, one,
                     other_rank, what(m->fault), two);
}

static char *stack_copy(const struct comm_log *log, uint32_t call)
{
    const char *stack =
        call == COMM_NONE
            ? ""
            : trace_names_get(&log->names, log->calls[call].stack);

    return *stack ? xstrdup(stack) : NULL;
}

struct collation *collation_create(const struct comm_job *job,
                                   const struct comm_log *const *logs)
{
    struct collation *c = xcalloc(1, sizeof *c);

    c->count = job->mismatch_count < COMM_MISMATCHES ? job->mismatch_count
                                                     : COMM_MISMATCHES;
    c->dropped = job->mismatch_count - c->count;
    c->faults = xcalloc(c->count + 1, sizeof *c->faults);
    for (size_t i = 0; i < c->count; i++) {
        const struct comm_mismatch *m = &job->mismatches[i];
        c->faults[i] = (struct collation_fault){
            .fault = m->fault,
            .rank = world_rank(logs[m->log], m->rank),
            .other_rank = world_rank(logs[m->other], m->other_rank),
            .sequence = m->sequence,
            .text = text_make(m, logs),
            .stack = stack_copy(logs[m->log], m->call),
            .other_stack = stack_copy(logs[m->other], m->other_call),
        };
    }
    return c;
}

void collation_destroy(struct collation *c)
{
    for (size_t i = 0; c && i < c->count; i++) {
        free(c->faults[i].text);
        free(c->faults[i].stack);
        free(c->faults[i].other_stack);
    }
    if (c)
        free(c->faults);
    free(c);
}
