/* SPDX-License-Identifier: Apache-2.0
 * The kinds of record by number and name, and the texts of NAME records. */
#include <stdlib.h>
#include <string.h>

#include "common/trace/trace_read.h"
#include "common/base/xmalloc.h"

/* Names of fields, a NULL behind them: some kinds have none. */
#define F(field) #field,
#define X(number, kind, name, use, fields, text)                               \
    static const char *const name##_fields[] = {fields NULL};
TRACE_KINDS(X)
#undef X
#undef F

#define X(number, kind, name, use, fields, text)                               \
    static_assert(TRACE_WORD_COUNT(kind) <= TRACE_FIELDS_MAX,                  \
                  "a record's word has a bit for each of " #name "'s fields");
TRACE_KINDS(X)
#undef X

/* By number, with holes. */
static const struct trace_kind_info kinds[] = {
#define X(number, kind, name, use, fields, text)                               \
    [number] = {TRACE_##kind,           #name, name##_fields,                  \
                TRACE_WORD_COUNT(kind), text,  TRACE_FOR_##use},
    TRACE_KINDS(X)
#undef X
};

#define KINDS (sizeof kinds / sizeof *kinds)

const struct trace_kind_info *trace_kind_find(unsigned kind)
{
    return kind < KINDS && kinds[kind].name ? &kinds[kind] : NULL;
}

enum trace_for trace_kind_for(unsigned kind)
{
    return kind < KINDS ? kinds[kind].use : TRACE_FOR_TIME;
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

void trace_names_add(struct trace_names *names, const struct trace_item *item)
{
    size_t length = item->head.text_bytes;

    if (item->head.kind != TRACE_NAME)
        return;
    char *text = xmalloc(length + 1);
    memcpy(text, item->text, length);
    text[length] = '\0';
    xfree(map_put(&names->texts, trace_as_name(item)->name, text));
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
        xfree(text);
    map_fini(&names->texts);
}
