/* SPDX-License-Identifier: Apache-2.0
 * The kinds of record by number and name, and the texts of NAME records. */
#include <stdlib.h>
#include <string.h>

#include "common/trace/trace_read.h"
#include "common/base/xmalloc.h"

/* By number, with holes. */
static const struct trace_kind_info kinds[] = {
#define X(number, kind, name, fields, text)                                    \
    [number] = {TRACE_##kind, name, fields, text},
    TRACE_KINDS(X)
#undef X
};

#define KINDS (sizeof kinds / sizeof *kinds)

const struct trace_kind_info *trace_kind_find(unsigned kind)
{
    return kind < KINDS && kinds[kind].name ? &kinds[kind] : NULL;
}

const struct trace_kind_info *trace_kind_next(unsigned kind)
{
    while (++kind < KINDS)
        if (kinds[kind].name)
            return &kinds[kind];
    return NULL;
}

const struct trace_kind_info *trace_kind_find_name(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].name && !strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

int trace_field_index(enum trace_kind kind, const char *name)
{
    const char *at = kinds[kind].fields;
    size_t length = strlen(name);

    for (int i = 0; *at; i++) {
        size_t width = strcspn(at, " ");
        if (width == length && !strncmp(at, name, length))
            return i;
        at += width + (at[width] == ' ');
    }
    return -1;
}

void trace_names_add(struct trace_names *names, const struct trace_item *item)
{
    size_t length = item->head.text_bytes;

    if (item->head.kind != TRACE_NAME)
        return;
    char *text = xmalloc(length + 1);
    memcpy(text, item->text, length);
    text[length] = '\0';
    free(map_put(&names->texts, trace_field(item, 0), text));
}

const char *trace_names_get(const struct trace_names *names, uint64_t id)
{
    const char *text = map_get(&names->texts, id);

    if (text)
        return text;
    return id ? "?" : "";
}

void trace_names_fini(struct trace_names *names)
{
    size_t cursor = 0;

    for (void *text; (text = map_next(&names->texts, &cursor));)
        free(text);
    map_fini(&names->texts);
}
