/* SPDX-License-Identifier: Apache-2.0
 * What this process has recorded so far: it has its own trace mapped. */
#ifndef MEMSIM_TESTS_CUDNN_TRACE_H
#define MEMSIM_TESTS_CUDNN_TRACE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace.h"

struct seen {
    int count; /* records of the kind */
    uint64_t fields[TRACE_FIELDS_MAX];
    char text[4096];
};

/* The whole of this process's trace, for the caller to free; NULL without. */
static char *trace_bytes(size_t *bytes)
{
    char line[4096], *path = NULL, *content = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && !path && fgets(line, sizeof line, maps))
        if (strstr(line, ".trace\n"))
            path = strchr(line, '/');
    if (maps)
        fclose(maps);
    if (!path)
        return NULL;
    path[strlen(path) - 1] = '\0';
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    content = malloc(*bytes);
    if (fread(content, 1, *bytes, file) != *bytes)
        *bytes = 0;
    fclose(file);
    return content;
}

static void seen_add(struct seen *seen, const struct trace_record *record)
{
    const char *fields = (const char *)(record + 1);
    const char *text = fields + record->fields * sizeof(uint64_t);
    size_t length = record->text_bytes < sizeof seen->text
                        ? record->text_bytes
                        : sizeof seen->text - 1;

    seen->count++;
    memcpy(seen->fields, fields, record->fields * sizeof(uint64_t));
    memcpy(seen->text, text, length);
    seen->text[length] = '\0';
}

static void chunk_seen(const struct trace_chunk *chunk, enum trace_kind kind,
                       struct seen *seen)
{
    const char *p = (const char *)(chunk + 1);

    while (p < (const char *)chunk + chunk->used_bytes) {
        const struct trace_record *record = (const struct trace_record *)p;

        if (record->kind == (uint16_t)kind)
            seen_add(seen, record);
        p += sizeof *record + record->fields * sizeof(uint64_t) +
             (record->text_bytes + 7) / 8 * 8;
    }
}

/* The last record of KIND, and how many there are. */
__attribute__((unused)) static struct seen trace_seen(enum trace_kind kind)
{
    struct seen seen = {0};
    size_t bytes = 0;
    char *trace = trace_bytes(&bytes);
    const char *last = trace + TRACE_HEADER_BYTES;

    for (const char *at = last + TRACE_CHUNK_BYTES; at < trace + bytes;
         at += TRACE_CHUNK_BYTES)
        chunk_seen((const struct trace_chunk *)at, kind, &seen);
    if (bytes)
        chunk_seen((const struct trace_chunk *)last, kind, &seen);
    free(trace);
    return seen;
}

#endif
