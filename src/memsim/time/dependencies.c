/* SPDX-License-Identifier: Apache-2.0
 *
 *   host-host      the thread's call before a call
 *   host-device    the call that launched an operation
 *   device-device  the operation before it on its stream, the one of another
 *                  stream whose event its stream waited for, and the one that
 *                  its engine was busy with
 *   device-host    the operation that a call waited for */
#include "memsim/time/dependencies.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 1024
#define NAME_SHOWN 60

/* NS since the begin of the step of OP, in us. */
static double us_since(const struct time_log *log,
                       const struct simulation_op *op, uint64_t ns)
{
    const struct simulation *s = &log->simulation;
    uint64_t begin =
        op->step < s->steps.count ? s->begins[op->step].ns : 0;

    return ((double)ns - (double)begin) / 1e3;
}

static void op_text(const struct time_log *log, const struct simulation_op *op,
                    char *text, size_t size)
{
    char name[NAME_BYTES];

    time_log_op_name(op, &log->names, name, sizeof name);
    snprintf(text, size, "#%" PRIu64 " %.*s", op->done.tag, NAME_SHOWN, name);
}

static bool is_wanted(const struct time_log *log,
                      const struct simulation_op *op, const char *wanted)
{
    char name[NAME_BYTES];
    bool found;

    if (*wanted == '#')
        return strtoull(wanted + 1, NULL, 10) == op->done.tag;
    time_log_op_name(op, &log->names, name, sizeof name);
    if (strstr(name, wanted) ||
        strstr(trace_names_get(&log->names, op->operator), wanted) ||
        !strcmp(work_family_name(op->price.family), wanted))
        return true;
    if (!op->module)
        return false;
    char *module = module_table_title(&log->modules, op->module);
    found = strstr(module, wanted) != NULL;
    free(module);
    return found;
}

static void print_op(const struct time_log *log, const char *kind,
                     const char *what, const struct simulation_op *other,
                     bool decided, FILE *out)
{
    char text[NAME_BYTES];

    if (!other)
        return;
    op_text(log, other, text, sizeof text);
    fprintf(out, "    %-13s  %s %s, which ended at %.3f us%s\n", kind, what,
            text, us_since(log, other, other->done.end_ns),
            decided ? "  <--" : "");
}

static void print_needs(const struct time_log *log,
                        const struct simulation_op *op, FILE *out)
{
    const struct sim_done *d = &op->done;
    const struct simulation_call *call = time_log_call(log, op->call);
    const struct simulation_call *before =
        call ? time_log_call(log, call->before) : NULL;

    if (before)
        fprintf(out,
                "    host-host      its call came after %s, which returned at "
                "%.3f us\n",
                time_log_call_name(before->kind),
                us_since(log, op, before->end_ns));
    if (call)
        fprintf(out,
                "    host-device    launched by %s of thread %u at %.3f us%s\n",
                time_log_call_name(call->kind), call->thread,
                us_since(log, op, d->called_ns),
                d->cause == SIM_BY_HOST ? "  <--" : "");
    print_op(log, "device-device", "after", time_log_op(log, d->before_tag),
             d->cause == SIM_BY_STREAM, out);
    if (d->event_tag && d->event_tag != d->before_tag)
        print_op(log, "device-device", "by an event, after",
                 time_log_op(log, d->event_tag), d->cause == SIM_BY_EVENT, out);
    if (d->cause == SIM_BY_ENGINE || d->cause == SIM_BY_PEER)
        print_op(log, "device-device",
                 d->cause == SIM_BY_PEER ? "with the last rank, after"
                                         : "the engine was busy with",
                 time_log_op(log, d->cause_tag), true, out);
}

/* What waited for OP. */
static void print_waiting(const struct time_log *log,
                          const struct simulation_op *op, FILE *out)
{
    char text[NAME_BYTES];

    for (size_t i = 0; i < log->op_count; i++) {
        const struct simulation_op *other = &log->ops[i];
        if (other->done.cause == SIM_BY_HOST ||
            other->done.cause_tag != op->done.tag)
            continue;
        op_text(log, other, text, sizeof text);
        fprintf(out, "    device-device  then %s, at %.3f us\n", text,
                us_since(log, op, other->done.start_ns));
    }
    for (size_t i = 0; i < log->call_count; i++)
        if (log->calls[i].woken_by == op->done.tag)
            fprintf(out,
                    "    device-host    %s of thread %u waited for it until "
                    "%.3f us\n",
                    time_log_call_name(log->calls[i].kind),
                    log->calls[i].thread,
                    us_since(log, op, log->calls[i].end_ns));
}

size_t dependencies_print(const struct time_log *log, const char *wanted,
                          size_t most, FILE *out)
{
    char text[NAME_BYTES];
    size_t count = 0;

    for (size_t i = 0; i < log->op_count; i++) {
        const struct simulation_op *op = &log->ops[i];
        if (!is_wanted(log, op, wanted) || count++ >= most)
            continue;
        op_text(log, op, text, sizeof text);
        fprintf(out, "  %s\n    runs from %.3f to %.3f us of the step\n", text,
                us_since(log, op, op->done.start_ns),
                us_since(log, op, op->done.end_ns));
        print_needs(log, op, out);
        print_waiting(log, op, out);
    }
    return count;
}
