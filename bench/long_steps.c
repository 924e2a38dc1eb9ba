/* SPDX-License-Identifier: Apache-2.0
 * Makes a long trace of a short one: long_steps TRACE OUT BYTES. All records of
 * the last step but one, work and memory alike, are repeated until the file has
 * BYTES; then the rest of TRACE follows. For measuring how fast a trace is read:
 * where a step leaves other blocks behind than it found, a replay stops at the
 * second one (see long_trace.c for replays). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "common/trace/step.h"
#include "common/trace/trace_write.h"

struct record {
    struct trace_record head;
    uint64_t fields[TRACE_FIELDS_MAX];
    char *text;
};

struct records {
    struct record *all;
    size_t count, capacity;
};

static void die(const char *text)
{
    fprintf(stderr, "long_steps: %s\n", text);
    exit(1);
}

static void add(struct records *r, const struct trace_item *item)
{
    struct record new = {.head = item->head};

    memcpy(new.fields, item->fields, sizeof new.fields);
    new.text = xmalloc(item->head.text_bytes + 1);
    memcpy(new.text, item->text, item->head.text_bytes);
    xgrow(&r->all, r->count, &r->capacity, sizeof *r->all);
    r->all[r->count++] = new;
}

static void read_all(const char *path, struct records *r,
                     struct step_list *steps)
{
    struct step_finder *finder = step_finder_create();
    struct trace_reader reader;
    struct trace_item item;
    struct err err = {""};
    int more;

    if (trace_reader_open(&reader, path, &err))
        die(err.text);
    while ((more = trace_reader_next(&reader, &item, &err)) > 0) {
        step_finder_take(finder, &item);
        add(r, &item);
    }
    if (more)
        die(err.text);
    trace_reader_close(&reader);
    step_finder_conclude(finder, steps);
}

/* Writes the records [FIRST, END), SHIFT_NS later than they were. */
static uint64_t put(struct trace_writer *w, const struct records *r,
                    size_t first, size_t end, uint64_t shift_ns)
{
    uint64_t bytes = 0;

    for (size_t i = first; i < end; i++) {
        const struct record *at = &r->all[i];
        if (at->head.kind == TRACE_END)
            continue;
        trace_writer_put(w, &(struct trace_put){
                                .kind = (enum trace_kind)at->head.kind,
                                .thread = at->head.thread,
                                .time_ns = at->head.time_ns + shift_ns,
                                .fields = at->fields,
                                .count = at->head.fields,
                                .text = at->text,
                                .text_bytes = at->head.text_bytes});
        bytes += 8 + at->head.text_bytes;
        for (size_t k = 0; k < at->head.fields; k++)
            bytes += at->fields[k] ? 8 : 0;
    }
    return bytes;
}

int main(int argc, char **argv)
{
    struct trace_writer w = TRACE_WRITER_INIT;
    struct records r = {.count = 0};
    struct step_list steps;
    struct err err = {""};
    uint64_t shift_ns = 0, bytes = 0, wanted;

    if (argc != 4)
        die("give a trace, a file and the bytes that it is to have");
    wanted = strtoull(argv[3], NULL, 10);
    read_all(argv[1], &r, &steps);
    if (steps.count < 3)
        die("the trace has less than 3 steps");
    const struct step *first = &steps.steps[steps.count - 2], *last = first + 1;
    if (trace_writer_open(&w, argv[2], UINT64_MAX, &err))
        die(err.text);
    bytes += put(&w, &r, 0, last->first, 0);
    while (bytes < wanted) {
        shift_ns += last->first_ns - first->first_ns;
        bytes += put(&w, &r, first->first, last->first, shift_ns);
    }
    put(&w, &r, last->first, r.count, shift_ns);
    trace_writer_close(&w, TRACE_END_EXIT, 0,
                       r.all[r.count - 1].head.time_ns + shift_ns);
    return 0;
}
