/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/assume.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int assume_refuse(const char *text, int length, struct err *err)
{
    return err_set(err,
                   "--assume: '%.*s' is not FILE:LINE=X, such as "
                   "train.py:12=0.01",
                   length, text);
}

/* "train.py:12=0.01", LENGTH bytes of it. */
static int entry_parse(const char *text, size_t length,
                       struct session_assume *entry, struct err *err)
{
    const char *equals = memchr(text, '=', length);
    const char *colon = equals ? memchr(text, ':', length) : NULL;
    size_t where = equals ? (size_t)(equals - text) : 0;
    char *end;

    if (!colon || colon == text || colon > equals || equals == colon + 1 ||
        memchr(text, '/', where) || where >= sizeof entry->where ||
        strspn(colon + 1, "0123456789") != (size_t)(equals - colon - 1))
        return assume_refuse(text, (int)length, err);
    entry->value = strtod(equals + 1, &end);
    if (end == equals + 1 || end != text + length || !isfinite(entry->value))
        return assume_refuse(text, (int)length, err);
    memcpy(entry->where, text, where);
    entry->where[where] = '\0';
    return 0;
}

int assume_parse(const char *text, struct session *session, struct err *err)
{
    session->assume_count = 0;
    while (text && *text) {
        size_t length = strcspn(text, ",");

        if (session->assume_count == SESSION_ASSUMES)
            return err_set(err, "--assume: more than %d lines",
                           SESSION_ASSUMES);
        if (entry_parse(text, length, &session->assumes[session->assume_count],
                        err))
            return -1;
        session->assume_count++;
        text += length + (text[length] == ',');
    }
    return 0;
}

void assume_unused(struct session *session)
{
    for (uint32_t i = 0; i < session->assume_count; i++) {
        uint32_t n = atomic_load(&session->note_count);
        char where[SESSION_NAME_BYTES];

        memcpy(where, session->assumes[i].where, sizeof where);
        if (atomic_load(&session->assumes[i].times) || n >= SESSION_NOTES)
            continue;
        snprintf(session->notes[n].text, sizeof session->notes[n].text,
                 "--assume %s had no effect: that line, and what it calls, "
                 "reads nothing that memsim does not know",
                 where);
        atomic_store(&session->notes[n].ready, 1);
        atomic_store(&session->note_count, n + 1);
    }
}
