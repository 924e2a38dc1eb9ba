/* SPDX-License-Identifier: Apache-2.0
 * memsim trace: a trace as text, one record a line. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/trace/session.h"
#include "common/base/suggest.h"
#include "common/trace/trace_read.h"
#include "common/base/xmalloc.h"
#include "memsim/cli/cmd.h"
#include "memsim/study/input_kind.h"
#include "memsim/run/run.h"
#include "memsim/time/work_table.h"

#define KINDS_MAX 128

struct trace_options {
    const char *kinds;
    const char *gpu;
    bool work;
    bool each;
};

static const struct option_row rows[] = {
    {"kind", 'k', OPTION_STRING, "KIND[,KIND]...",
     offsetof(struct trace_options, kinds),
     .help = "print only these kinds, such as gemm,launch; see\n"
             "memsim-trace(5)"},
    {"work", 'w', OPTION_FLAG, NULL, offsetof(struct trace_options, work),
     .help = "print a table of kernels and library calls instead"},
    {"each", 'e', OPTION_FLAG, NULL, offsetof(struct trace_options, each),
     .help = "with --work: one line for each operation, each NVTX\n"
             "mark and each call of an outermost module"},
    {"gpu", 'g', OPTION_STRING, "NAME|FILE",
     offsetof(struct trace_options, gpu),
     .help = "with --work: predict times on this GPU (default: that\n"
             "of the trace)"},
    {0},
};

static const struct options options = {
    .command = "memsim trace",
    .operands = "DIR|FILE.trace...",
    .summary = "Prints the records of a run's traces, one on each line: "
               "nanoseconds since the\nstart, thread, kind, fields.",
    .rows = rows,
    .wanted = "no trace given",
    .operands_min = 1,
};

struct dump {
    bool wanted[KINDS_MAX];
    struct trace_names names;
    struct work_table *work; /* NULL: the records are printed */
    bool each;
};

enum form { FORM_NUMBER, FORM_HEX, FORM_PAIR, FORM_NAME };

/* How fields print that are not plain numbers. */
static const struct field_form {
    const char *field;
    enum form form;
} forms[] = {
    {"address", FORM_HEX},        {"alignment", FORM_HEX},
    {"block_y_z", FORM_PAIR},     {"communicator", FORM_HEX},
    {"compute_scale", FORM_PAIR}, {"destination", FORM_HEX},
    {"event", FORM_HEX},          {"exec", FORM_HEX},
    {"grid_x_y", FORM_PAIR},      {"grid_z_block_x", FORM_PAIR},
    {"lda_ldb", FORM_PAIR},       {"library", FORM_NAME},
    {"ldc_ldd", FORM_PAIR},       {"name", FORM_NAME},
    {"pool_high", FORM_HEX},      {"pool_low", FORM_HEX},
    {"source", FORM_HEX},         {"stream", FORM_HEX},
    {"transpose_a_b", FORM_PAIR}, {"types_a_b_c_d", FORM_HEX},
};

static enum form field_form(const char *field)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].field, field))
            return forms[i].form;
    return FORM_NUMBER;
}

static void print_text(const char *text, size_t length)
{
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c < ' ' || c == 0x7f)
            printf("\\%03o", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_value(const struct dump *dump, enum form form, uint64_t value)
{
    switch (form) {
    case FORM_NUMBER:
        printf("%" PRIu64, value);
        break;
    case FORM_HEX:
        printf(value ? "0x%" PRIx64 : "0", value);
        break;
    case FORM_PAIR:
        printf("%u,%u", (uint32_t)value, (uint32_t)(value >> 32));
        break;
    case FORM_NAME: {
        const char *text = trace_names_get(&dump->names, value);
        print_text(text, strlen(text));
        break;
    }
    }
}

static void print_fields(const struct dump *dump,
                         const struct trace_kind_info *kind,
                         const struct trace_item *item)
{
    for (unsigned i = 0; i < kind->field_count; i++) {
        enum form form = field_form(kind->fields[i]);

        if (form == FORM_NAME && kind->kind == TRACE_NAME)
            form = FORM_NUMBER;
        printf(" %s=", kind->fields[i]);
        print_value(dump, form, item->fields[i]);
    }
    /* A later version's. */
    for (unsigned i = kind->field_count; i < item->head.fields; i++)
        printf(" field%u=%" PRIu64, i, item->fields[i]);
}

static void print_record(const struct dump *dump, uint64_t start_ns,
                         const struct trace_item *item)
{
    const struct trace_kind_info *kind = trace_kind_find(item->head.kind);

    printf("%" PRId64 " t%u %s", (int64_t)(item->head.time_ns - start_ns),
           item->head.thread, kind->name);
    print_fields(dump, kind, item);
    if (kind->text || item->head.text_bytes) {
        putchar(' ');
        print_text(item->text, item->head.text_bytes);
    }
    putchar('\n');
}

static int dump_file(struct dump *dump, const char *path, struct err *err)
{
    struct trace_reader reader;
    struct trace_item item;
    int rc;

    if (dump->work)
        return work_table_add(dump->work, path, err);
    if (trace_reader_open(&reader, path, err))
        return -1;
    while ((rc = trace_reader_next(&reader, &item, err)) > 0) {
        trace_names_add(&dump->names, &item);
        if (dump->wanted[item.head.kind])
            print_record(dump, reader.header.start_monotonic_ns, &item);
    }
    if (reader.unknown)
        fprintf(stderr,
                "memsim: note: %s: %" PRIu64 " records of kinds that only a "
                "later memsim knows\n",
                path, reader.unknown);
    trace_names_fini(&dump->names);
    trace_reader_close(&reader);
    return rc;
}

static int dump_directory(struct dump *dump, const char *path, struct err *err)
{
    struct run run;
    int rc = run_open(&run, path, err);
    const struct run_trace *trace = run_next_process(&run, NULL);
    bool several = trace && run_next_process(&run, trace);

    if (!rc && !trace)
        rc = err_set(err, "%s: there is no trace in this directory", path);
    for (; !rc && trace; trace = run_next_process(&run, trace)) {
        if (several && !dump->work)
            printf("# %s\n", trace->path);
        rc = dump_file(dump, trace->path, err);
    }
    run_close(&run);
    return rc;
}

static int unknown_kind(const char *name, struct err *err)
{
    struct suggest nearest;

    suggest_start(&nearest, name, 1);
    for (const struct trace_kind_info *k = trace_kind_next(0); k;
         k = trace_kind_next(k->kind))
        suggest_offer(&nearest, k->name);
    if (nearest.count)
        return err_set(err, "--kind: %s: no such kind; did you mean %s?", name,
                       nearest.names[0]);
    return err_set(err, "--kind: %s: no such kind; see memsim-trace(5)", name);
}

static int choose_kinds(struct dump *dump, const char *list, struct err *err)
{
    char *copy = list ? xstrdup(list) : NULL, *rest = copy, *name;
    int rc = 0;

    for (size_t i = 0; i < KINDS_MAX; i++)
        dump->wanted[i] = !list;
    while (!rc && (name = strsep(&rest, ","))) {
        const struct trace_kind_info *kind = trace_kind_find_name(name);
        if (kind)
            dump->wanted[kind->kind] = true;
        else
            rc = unknown_kind(name, err);
    }
    free(copy);
    return rc;
}

static int dump_path(struct dump *dump, const char *path, struct err *err)
{
    struct stat st;

    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return dump_directory(dump, path, err);
    return dump_file(dump, path, err);
}

static int dump_paths(struct dump *dump, const struct operands *paths,
                      struct err *err)
{
    int rc = 0;

    for (int i = 0; i < paths->count && !rc; i++)
        rc = input_kind_check(paths->values[i],
                              INPUT_RUN | INPUT_PROFILE | INPUT_TRACE, err) ||
             dump_path(dump, paths->values[i], err);
    if (!rc && dump->work && !dump->each)
        rc = work_table_print(dump->work, stdout, err);
    return rc;
}

int cmd_trace(int argc, char **argv)
{
    struct trace_options o = {NULL};
    struct dump dump = {.names = {{0}}};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (choose_kinds(&dump, o.kinds, &err))
        return cmd_usage(&options, CMD_USAGE, &err);
    if (o.work && !(dump.work = work_table_create(o.gpu, &err)))
        return cmd_fail(CMD_FAILED, &err);
    dump.each = o.each;
    if (o.work && o.each)
        work_table_each(dump.work, stdout);
    int rc = dump_paths(&dump, &operands, &err);
    if (dump.work)
        work_table_destroy(dump.work);
    if (rc)
        return cmd_fail(CMD_FAILED, &err);
    return CMD_OK;
}
