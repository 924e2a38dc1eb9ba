/* SPDX-License-Identifier: Apache-2.0
 * Which kinds of record are operations, and which of their words are what. No
 * heap: the capture library uses it, too. */
#include "common/trace/op.h"

#define NONE -1

static const struct rule {
    enum op_kind kind;
    int name, device, stream, event, blocking;
} rules[] = {
#define AT(kind, field)                                                        \
    (int)(offsetof(TRACE_STRUCT_##kind, field) / sizeof(uint64_t))
#define ROW(kind, name, stream, event, blocking)                               \
    [TRACE_##kind] = {OP_##kind, name,  AT(kind, device),                      \
                      stream,    event, blocking}
#define WORK(kind)  ROW(kind, AT(kind, name), AT(kind, stream), NONE, NONE)
#define ON(kind)    ROW(kind, NONE, AT(kind, stream), NONE, NONE)
#define OF(kind)    ROW(kind, NONE, NONE, NONE, NONE)
#define ORDER(kind) ROW(kind, NONE, AT(kind, stream), AT(kind, event), NONE)
#define EVENT(kind) ROW(kind, NONE, NONE, AT(kind, event), NONE)
#define MOVE(kind)  ROW(kind, NONE, AT(kind, stream), NONE, AT(kind, blocking))
    WORK(LAUNCH),       WORK(GEMM),          WORK(CONVOLUTION),
    WORK(ATTENTION),    WORK(LIBRARY_CALL),  WORK(COLLECTIVE),
    MOVE(COPY),         MOVE(SET),           ON(HOST_FUNCTION),
    ON(GRAPH_LAUNCH),   ORDER(EVENT_RECORD), ORDER(STREAM_WAIT),
    ON(SYNC_STREAM),    OF(SYNC_DEVICE),     EVENT(SYNC_EVENT),
    OF(DEVICE_MALLOC),  OF(DEVICE_FREE),     ON(STREAM_CREATE),
    ON(STREAM_DESTROY), EVENT(EVENT_CREATE), EVENT(EVENT_DESTROY),
    [TRACE_JOIN] = {OP_HOST_JOIN, NONE, NONE, NONE, NONE, NONE},
};

/* Word INDEX, or 0 of a kind that has none such. */
static uint64_t field_word(const uint64_t *fields, int index)
{
    return index < 0 ? 0 : fields[index];
}

struct op op_of_record(enum trace_kind kind, const uint64_t *fields)
{
    if ((unsigned)kind >= sizeof rules / sizeof *rules || !rules[kind].kind)
        return (struct op){.kind = OP_NONE};
    const struct rule *r = &rules[kind];
    return (struct op){
        .kind = r->kind,
        .device = (uint32_t)field_word(fields, r->device),
        .name = (uint32_t)field_word(fields, r->name),
        .stream = field_word(fields, r->stream),
        .event = field_word(fields, r->event),
        .blocking = field_word(fields, r->blocking) != 0,
        .record = kind,
        .fields = fields,
    };
}
