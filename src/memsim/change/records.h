/* SPDX-License-Identifier: Apache-2.0
 * The records of a trace that say what a process's GPUs and hosts did, in
 * memory. Records of the allocator are left out: a changed job has others. */
#ifndef MEMSIM_MEMSIM_CHANGE_RECORDS_H
#define MEMSIM_MEMSIM_CHANGE_RECORDS_H

#include "common/base/err.h"
#include "common/trace/step.h"
#include "common/trace/trace_read.h"

struct record {
    enum trace_kind kind;
    uint32_t thread;
    uint32_t phase; /* enum trace_phase_kind, when it was written */
    uint32_t field_count, text_bytes;
    uint64_t time_ns;
    uint64_t allocated_bytes; /* of PyTorch's blocks, when it was written */
    size_t fields, text; /* where they begin in words and texts */
};

/* A parameter of the modules. */
struct parameter {
    uint64_t module, elements, element_bytes;
};

struct module_name {
    uint64_t module, root, name;
};

/* A tensor that one of a list of modules was given or has returned. */
struct module_value {
    uint64_t module, bytes;
    size_t at; /* the record that follows */
    bool is_output;
};

struct records {
    struct record *all;
    size_t count, capacity;
    uint64_t *words;
    size_t words_count, words_capacity;
    char *texts;
    size_t texts_count, texts_capacity;
    struct step_list steps; /* [first, end) count in `all` */
    struct trace_names names;
    struct parameter *parameters; /* as the modules list them */
    size_t parameter_count, parameter_capacity;
    struct module_name *modules;
    size_t module_count, module_capacity;
    struct module_value *values; /* in the order of the records */
    size_t value_count, value_capacity;
    bool imported;
    char torch[32]; /* its version; "": not known */
};

/* Reads the trace PATH. Returns 0 with *R to be given to records_fini, or -1
 * with nothing to free. */
int records_read(struct records *r, const char *path, struct err *err);
void records_fini(struct records *r);

/* The fields of RECORD, TRACE_FIELDS_MAX of them; borrowed, until a record is
 * added. */
uint64_t *records_fields(const struct records *r, const struct record *record);

/* The record's text, of text_bytes. */
const char *records_text(const struct records *r, const struct record *record);

/* The name of MODULE, as in model.named_modules(); "": it has none.
 * Borrowed. */
const char *records_module(const struct records *r, uint64_t module);

/* Adds a record like FROM, with copies of its fields and text; returns its
 * index. */
size_t records_add(struct records *r, const struct record *from,
                   const uint64_t *fields, const char *text);

#endif
