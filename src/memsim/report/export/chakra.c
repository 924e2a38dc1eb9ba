/* SPDX-License-Identifier: Apache-2.0
 * Fields are those of mlcommons/chakra's schema/protobuf/et_def.proto; a file
 * is a GlobalMetadata and then Nodes, each after its length. Attributes are
 * named as ASTRA-sim reads them (is_cpu_op, comm_type, comm_size, comm_src,
 * comm_dst, comm_tag, pg_name, tensor_size). */
#include "memsim/report/export/chakra.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"
#include "memsim/report/export/chakra_comm.h"
#include "memsim/time/time_log.h"

#define SCHEMA "0.0.4"

/* NodeType. Loads and stores of memory are those of a pool beside the node:
 * copies to and from the host are none, and take their time as computing. */
enum node_type {
    NODE_COMP = 4,
    NODE_COMM_SEND = 5,
    NODE_COMM_RECV = 6,
    NODE_COMM_COLL = 7,
};

/* Wire types of protobuf. */
enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

/* A message that is being made. */
struct message {
    unsigned char *bytes;
    size_t count, capacity;
};

static void put_byte(struct message *m, unsigned char byte)
{
    xgrow(&m->bytes, m->count, &m->capacity, 1);
    m->bytes[m->count++] = byte;
}

static void put_varint(struct message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(m, (unsigned char)(value | 0x80));
    put_byte(m, (unsigned char)value);
}

static void put_number(struct message *m, unsigned field, uint64_t value)
{
    put_varint(m, field << 3 | WIRE_VARINT);
    put_varint(m, value);
}

static void put_bytes(struct message *m, unsigned field, const void *bytes,
                      size_t count)
{
    put_varint(m, field << 3 | WIRE_BYTES);
    put_varint(m, count);
    for (size_t i = 0; i < count; i++)
        put_byte(m, ((const unsigned char *)bytes)[i]);
}

static void put_text(struct message *m, unsigned field, const char *text)
{
    char *clean = xstrdup(text);

    text_make_utf8(clean); /* protobuf's strings are */
    put_bytes(m, field, clean, strlen(clean));
    free(clean);
}

/* AttributeProto: its name is field 1, its value that of its type. */
enum { VALUE_INT64 = 9, VALUE_UINT64 = 13, VALUE_BOOL = 27, VALUE_TEXT = 29 };

static void put_attribute(struct message *m, const char *name, unsigned type,
                          uint64_t value)
{
    struct message attribute = {NULL};

    put_text(&attribute, 1, name);
    put_number(&attribute, type, value);
    put_bytes(m, 10, attribute.bytes, attribute.count);
    free(attribute.bytes);
}

static void put_text_attribute(struct message *m, unsigned field,
                               const char *name, const char *value)
{
    struct message attribute = {NULL};

    if (!*value)
        return;
    put_text(&attribute, 1, name);
    put_text(&attribute, VALUE_TEXT, value);
    put_bytes(m, field, attribute.bytes, attribute.count);
    free(attribute.bytes);
}

/* Repeated numbers, packed, as proto3 has them. */
static void put_numbers(struct message *m, unsigned field,
                        const uint64_t *numbers, size_t count)
{
    struct message packed = {NULL};

    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        put_varint(&packed, numbers[i]);
    put_bytes(m, field, packed.bytes, packed.count);
    free(packed.bytes);
}

static void message_write(struct message *m, FILE *out)
{
    struct message length = {NULL};

    put_varint(&length, m->count);
    fwrite(length.bytes, 1, length.count, out);
    fwrite(m->bytes, 1, m->count, out);
    free(length.bytes);
    m->count = 0;
}

/* --- nodes ---------------------------------------------------------------- */

/* A rank's file. */
struct file {
    const struct result *result;
    const struct time_log *log;
    unsigned rank;
    const struct comm_log *comms; /* NULL: not known */
    const struct chakra_groups *groups;
    struct map *tags; /* of messages, by their ends */
};

static uint64_t op_id(uint64_t tag)
{
    return 2 * tag;
}

static uint64_t call_id(uint64_t number)
{
    return 2 * number + 1;
}

static enum node_type op_type(const char *name, const struct simulation_op *op)
{
    if (op->kind != OP_COLLECTIVE)
        return NODE_COMP;
    if (strstr(name, "SendRecv"))
        return NODE_COMM_COLL;
    return strstr(name, "Send")   ? NODE_COMM_SEND
           : strstr(name, "Recv") ? NODE_COMM_RECV
                                  : NODE_COMM_COLL;
}

/* CollectiveCommType. A group of sends and receives is an all-to-all. */
static uint64_t collective_type(const char *name)
{
    static const struct {
        const char *part;
        uint64_t type;
    } types[] = {{"AllReduce", 0}, {"AllGather", 2}, {"ReduceScatter", 7},
                 {"Reduce", 1},    {"Gather", 3},    {"Scatter", 4},
                 {"Broadcast", 5}, {"Bcast", 5},     {"AlltoAll", 6},
                 {"SendRecv", 6}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strstr(name, types[i].part))
            return types[i].type;
    return 9; /* BARRIER */
}

static void put_times(struct message *m, uint64_t start_ns, uint64_t end_ns)
{
    put_number(m, 6, start_ns / 1000);
    put_number(m, 7, (end_ns - start_ns + 500) / 1000);
    put_attribute(m, "start_ns", VALUE_INT64, start_ns);
    put_attribute(m, "duration_ns", VALUE_INT64, end_ns - start_ns);
}

/* Operations that are kept, of TAGS, each once. */
static size_t ids_of(const struct time_log *log, const uint64_t *tags,
                     size_t count, uint64_t *ids)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        bool again = !tags[i] || !time_log_op(log, tags[i]);
        for (size_t j = 0; j < found; j++)
            again = again || ids[j] == op_id(tags[i]);
        if (!again)
            ids[found++] = op_id(tags[i]);
    }
    return found;
}

/* Its number, name and type, and what it waits for. */
static void put_start(struct message *m, const struct time_log *log,
                      const struct simulation_op *op, uint64_t id,
                      const char *name, enum node_type type)
{
    const struct sim_done *d = &op->done;
    const uint64_t tags[] = {d->before_tag, d->event_tag,
                             d->cause == SIM_BY_PEER ? 0 : d->cause_tag};
    uint64_t ids[3], call = call_id(op->call);

    put_number(m, 1, id);
    put_text(m, 2, name);
    put_number(m, 3, type);
    put_numbers(m, 4, &call, time_log_call(log, op->call) != NULL);
    put_numbers(m, 5, ids, ids_of(log, tags, 3, ids));
}

static void put_end(struct message *m, const struct time_log *log,
                    const struct simulation_op *op)
{
    put_attribute(m, "is_cpu_op", VALUE_BOOL, 0);
    put_attribute(m, "stream", VALUE_UINT64, op->stream);
    put_text_attribute(m, 10, "operator",
                       trace_names_get(&log->names, op->operator));
    if (op->module) {
        char *module = module_table_title(&log->modules, op->module);
        put_text_attribute(m, 10, "module", module);
        free(module);
    }
}

/* The call of F's rank that OP is; NULL: it is not known. */
static const struct comm_call *call_of(const struct file *f,
                                       const struct simulation_op *op)
{
    if (op->kind != OP_COLLECTIVE || !f->comms || f->comms->imported ||
        op->shape[0] >= f->comms->call_count)
        return NULL;
    return &f->comms->calls[op->shape[0]];
}

static void put_group(struct message *m, uint32_t group)
{
    char number[16];

    snprintf(number, sizeof number, "%u", group);
    if (group)
        put_text_attribute(m, 10, "pg_name", number);
}

static void put_collective(struct message *m, const struct file *f,
                           const struct simulation_op *op, const char *name)
{
    const struct comm_call *call = call_of(f, op);

    put_attribute(m, "comm_type", VALUE_INT64, collective_type(name));
    if (call && call->comm < f->comms->comm_count)
        put_group(m, chakra_groups_number(f->groups,
                                          &f->comms->comms[call->comm]));
}

/* What a rank of OP, a collective, gives: of a gather its own part. */
static uint64_t given_bytes(const struct file *f,
                            const struct simulation_op *op, const char *name)
{
    const struct comm_call *call = call_of(f, op);
    uint32_t ranks = call && call->comm < f->comms->comm_count
                         ? f->comms->comms[call->comm].ranks
                         : 0;

    return strstr(name, "Gather") && ranks ? op->bytes / ranks : op->bytes;
}

static void put_op(struct message *m, const struct file *f,
                   const struct simulation_op *op)
{
    const struct sim_done *d = &op->done;
    char name[1024];

    time_log_op_name(op, &f->log->names, name, sizeof name);
    enum node_type type = op_type(name, op);
    put_start(m, f->log, op, op_id(d->tag), name, type);
    put_times(m, d->start_ns, d->end_ns);
    if (type >= NODE_COMM_SEND)
        put_attribute(m, "comm_size", VALUE_INT64, given_bytes(f, op, name));
    if (type == NODE_COMM_COLL)
        put_collective(m, f, op, name);
    if (type < NODE_COMM_SEND && op->bytes)
        put_attribute(m, "tensor_size", VALUE_UINT64, op->bytes);
    if (type == NODE_COMP)
        put_attribute(m, "num_ops", VALUE_INT64, (uint64_t)op->price.flops);
    put_end(m, f->log, op);
}

/* --- messages ------------------------------------------------------------- */

#define PARTS_AT 48 /* bits: above those of any operation's number */

static void put_message(struct message *m, const struct file *f,
                        const struct simulation_op *op, uint64_t id,
                        const struct chakra_message *message, uint32_t group)
{
    put_start(m, f->log, op, id, message->receive ? "ncclRecv" : "ncclSend",
              message->receive ? NODE_COMM_RECV : NODE_COMM_SEND);
    put_times(m, op->done.start_ns, op->done.end_ns);
    put_attribute(m, "comm_size", VALUE_INT64, message->bytes);
    put_attribute(m, "comm_src", VALUE_INT64, message->from);
    put_attribute(m, "comm_dst", VALUE_INT64, message->to);
    put_attribute(m, "comm_tag", VALUE_INT64, message->tag);
    put_group(m, group);
    put_end(m, f->log, op);
}

/* What joins COUNT messages, IDS, of one call: later nodes wait for it. */
static void put_join(struct message *m, const struct file *f,
                     const struct simulation_op *op, const uint64_t *ids,
                     size_t count)
{
    put_number(m, 1, op_id(op->done.tag));
    put_text(m, 2, "ncclGroupEnd");
    put_number(m, 3, NODE_COMP);
    put_numbers(m, 5, ids, count);
    put_times(m, op->done.end_ns, op->done.end_ns);
    put_end(m, f->log, op);
}

/* A call of sends and receives: a node for each, and one that joins them.
 * Returns false where OP is none, or its other ends are not known. */
static bool write_messages(struct message *m, const struct file *f,
                           const struct simulation_op *op, FILE *out)
{
    const struct comm_call *call = call_of(f, op);

    if (!call || call->kind != COMM_PAIR || call->comm >= f->comms->comm_count)
        return false;
    const struct comm *comm = &f->comms->comms[call->comm];
    uint32_t group = chakra_groups_number(f->groups, comm);
    uint64_t *ids = xcalloc(call->part_count + 1, sizeof *ids);
    size_t count = 0;
    for (uint32_t i = 0; group && i < call->part_count; i++) {
        const struct op_part *part = &f->comms->parts[call->part_first + i];
        struct chakra_message message;

        if (!chakra_message_of(f->groups, comm, part, f->tags, &message))
            continue;
        ids[count] = op_id(op->done.tag) | (uint64_t)(i + 1) << PARTS_AT;
        put_message(m, f, op, ids[count++], &message, group);
        message_write(m, out);
    }
    if (group) {
        put_join(m, f, op, ids, count);
        message_write(m, out);
    }
    free(ids);
    return group > 0;
}

static void put_call(struct message *m, const struct time_log *log,
                     const struct simulation_call *call)
{
    uint64_t before = call_id(call->before), ids[1];

    put_number(m, 1, call_id(call->number));
    put_text(m, 2, time_log_call_name(call->kind));
    put_number(m, 3, NODE_COMP);
    put_numbers(m, 4, &before,
                call->before && time_log_call(log, call->before));
    put_numbers(m, 5, ids, ids_of(log, &call->woken_by, 1, ids));
    put_times(m, call->start_ns, call->end_ns);
    put_attribute(m, "is_cpu_op", VALUE_BOOL, 1);
    put_attribute(m, "tid", VALUE_UINT64, call->thread);
}

/* --- the file ------------------------------------------------------------- */

static void put_head(struct message *m, const struct file *f)
{
    char number[24];

    put_text(m, 1, SCHEMA);
    put_text_attribute(m, 2, "written_by", "memsim");
    snprintf(number, sizeof number, "%u", f->rank);
    put_text_attribute(m, 2, "rank", number);
    put_text_attribute(m, 2, "gpu", f->result->gpu.device_name);
}

/* Calls and operations by start; what something waits for ends before that. A
 * wait is written behind the operation that it is for. */
static uint64_t call_order(const struct simulation_call *call)
{
    return call->woken_by ? call->end_ns : call->start_ns;
}

struct ordered {
    uint64_t ns;
    size_t i;
    bool is_op;
};

static int ordered_compare(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    if (x->is_op != y->is_op)
        return x->is_op ? 1 : -1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static void put_all(const void *report, const struct report_style *style,
                    FILE *out)
{
    const struct file *f = report;
    const struct time_log *log = f->log;
    size_t count = log->op_count + log->call_count;
    struct ordered *order = xcalloc(count + 1, sizeof *order);
    struct message m = {NULL};

    (void)style;
    for (size_t i = 0; i < log->op_count; i++)
        order[i] = (struct ordered){log->ops[i].done.start_ns, i, true};
    for (size_t i = 0; i < log->call_count; i++)
        order[log->op_count + i] =
            (struct ordered){call_order(&log->calls[i]), i, false};
    if (count)
        qsort(order, count, sizeof *order, ordered_compare);
    put_head(&m, f);
    message_write(&m, out);
    for (size_t i = 0; i < count; i++) {
        const struct simulation_op *op =
            order[i].is_op ? &log->ops[order[i].i] : NULL;

        if (op && write_messages(&m, f, op, out))
            continue;
        if (op)
            put_op(&m, f, op);
        else
            put_call(&m, log, &log->calls[order[i].i]);
        message_write(&m, out);
    }
    free(m.bytes);
    free(order);
}

static int make_directory(const char *directory, struct err *err)
{
    struct stat st;

    if (mkdir(directory, 0777) &&
        (errno != EEXIST || stat(directory, &st) || !S_ISDIR(st.st_mode)))
        return err_set(err, "--chakra: %s: cannot make this directory: %s",
                       directory, strerror(errno));
    return 0;
}

/* A rank's first process. */
static bool is_first(const struct result *result, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (result->timelines[j].rank == result->timelines[i].rank)
            return false;
    return true;
}

static const struct comm_log *log_of(const struct chakra_job *job,
                                     unsigned rank)
{
    for (size_t i = 0; i < job->count; i++)
        if (job->logs[i]->rank == rank)
            return job->logs[i];
    return NULL;
}

static int write_rank(const struct chakra_job *job,
                      const struct chakra_groups *groups,
                      const struct result_timeline *t, struct err *err)
{
    struct map tags = {0};
    const struct file file = {job->result,           t->log, t->rank,
                              log_of(job, t->rank), groups, &tags};
    static const struct report_ops ops = {.write = put_all};
    char *path = xasprintf("%s/chakra.%u.et", job->directory, t->rank);
    int rc = report_write(&ops, &file, path, err);

    free(path);
    map_fini(&tags);
    return rc;
}

int chakra_write(const struct chakra_job *job, struct err *err)
{
    const struct result *result = job->result;
    struct chakra_groups groups = {NULL};

    if (make_directory(job->directory, err))
        return -1;
    if (!result->timeline_count)
        return err_set(err, "--chakra: no operation of a GPU was timed: there "
                            "is nothing to write");
    chakra_groups_add(&groups, job->logs, job->count);
    char *path = xasprintf("%s/groups.json", job->directory);
    int rc = chakra_groups_write(&groups, path, err);
    for (size_t i = 0; i < result->timeline_count && !rc; i++)
        if (is_first(result, i))
            rc = write_rank(job, &groups, &result->timelines[i], err);
    free(path);
    chakra_groups_fini(&groups);
    return rc;
}
