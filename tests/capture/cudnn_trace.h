/* SPDX-License-Identifier: Apache-2.0
 * What this process has recorded so far: it has its own trace mapped. */
#ifndef MEMSIM_TESTS_CUDNN_TRACE_H
#define MEMSIM_TESTS_CUDNN_TRACE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "answers.h"
#include "common/trace/trace_read.h"

struct seen {
    int count; /* records of the kind */
    union {    /* of the last one */
        uint64_t fields[TRACE_FIELDS_MAX];
        struct trace_gemm gemm;
        struct trace_convolution convolution;
        struct trace_attention attention;
        struct trace_library_call call;
        struct trace_guess guess;
        struct trace_size_range size;
    };
    char text[4096];
};

/* The path of this process's trace; "" without. */
static void trace_path(char path[4096])
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");

    *path = '\0';
    while (maps && !*path && fgets(line, sizeof line, maps))
        if (strstr(line, ".trace\n"))
            snprintf(path, 4096, "%.*s", (int)strcspn(strchr(line, '/'), "\n"),
                     strchr(line, '/'));
    if (maps)
        fclose(maps);
}

static void seen_add(struct seen *seen, const struct trace_item *item)
{
    size_t length = item->head.text_bytes < sizeof seen->text
                        ? item->head.text_bytes
                        : sizeof seen->text - 1;

    seen->count++;
    for (unsigned i = 0; i < TRACE_FIELDS_MAX; i++)
        seen->fields[i] = item->fields[i];
    memcpy(seen->text, item->text, length);
    seen->text[length] = '\0';
}

/* The last record of KIND, and how many there are. */
__attribute__((unused)) static struct seen trace_seen(enum trace_kind kind)
{
    if (is_real())
        SKIP("a GPU keeps no records");
    struct seen seen = {0};
    struct trace_reader r;
    struct trace_item item;
    char path[4096];

    trace_path(path);
    if (trace_reader_open(&r, path, NULL))
        return seen;
    while (trace_reader_next(&r, &item, NULL) > 0)
        if (item.head.kind == kind)
            seen_add(&seen, &item);
    trace_reader_close(&r);
    return seen;
}

#endif
