/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/diagnose/assumption.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/base/lock.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/python_line.h"
#include "capture/core/torch/tag.h"
#include "common/base/text_begins.h"
#include "common/trace/session.h"

/* The session's entry of that operator, module and question, a new one where
 * there is none; NULL where there is no room. Two processes that are first at
 * the same time get one each. */
static struct session_guess *guess_find(struct session *s,
                                        const struct session_guess *wanted)
{
    uint32_t count = atomic_load(&s->guess_count);

    for (uint32_t i = 0; i < count && i < SESSION_GUESSES; i++) {
        struct session_guess *g = &s->guesses[i];
        if (atomic_load(&g->ready) &&
            !strcmp(g->operation, wanted->operation) &&
            !strcmp(g->module, wanted->module) &&
            !strcmp(g->where, wanted->where) && !strcmp(g->what, wanted->what))
            return g;
    }
    count = atomic_fetch_add(&s->guess_count, 1);
    if (count >= SESSION_GUESSES)
        return NULL;
    struct session_guess *g = &s->guesses[count];
    memcpy(g->operation, wanted->operation, sizeof g->operation);
    memcpy(g->module, wanted->module, sizeof g->module);
    memcpy(g->where, wanted->where, sizeof g->where);
    memcpy(g->what, wanted->what, sizeof g->what);
    g->is_read = wanted->is_read;
    atomic_store(&g->ready, 1);
    return g;
}

/* NAME, cut between two characters of UTF-8 where it is too long. */
static void name_copy(char *to, size_t bytes, const char *name)
{
    size_t length = strlen(name);

    if (length >= bytes)
        for (length = bytes - 1; length && (name[length] & 0xc0) == 0x80;)
            length--;
    memcpy(to, name, length);
    to[length] = 0;
}

/* NAME's last identifier outside of template arguments, where it is a mangled
 * one: of _ZN2at6native13reduce_kernelILi512... "reduce_kernel". */
static void kernel_name_copy(char *to, size_t bytes, const char *name)
{
    const char *at = name + (!text_begins(name, "_Z") ? 0 : 2), *last = NULL;
    int length = 0;

    at += at != name && *at == 'N';
    while (at != name && *at >= '1' && *at <= '9') {
        char *end;
        unsigned long count = strtoul(at, &end, 10);

        if (count > strlen(end))
            break;
        last = end;
        length = (int)count;
        at = end + count;
    }
    if (last)
        snprintf(to, bytes, "%.*s", length, last);
    else
        name_copy(to, bytes, name);
}

static void guess_count(const struct guess *guess, const char *what)
{
    struct session *s = memsim_session();
    struct session_guess wanted = {0};
    const char *operation, *module;

    if (!s)
        return;
    tag_names(&operation, &module);
    if (guess->asker)
        operation = record_name(guess->asker);
    python_line(wanted.where, sizeof wanted.where);
    if (operation)
        name_copy(wanted.operation, sizeof wanted.operation, operation);
    else
        kernel_name_copy(wanted.operation, sizeof wanted.operation,
                         record_name(guess->name));
    name_copy(wanted.module, sizeof wanted.module, module ? module : "");
    name_copy(wanted.what, sizeof wanted.what, what);
    wanted.is_read = guess->is_read;
    core_lock(LOCK_NAME);
    struct session_guess *g = guess_find(s, &wanted);
    core_unlock(LOCK_NAME);
    if (!g)
        return;
    atomic_fetch_add(&g->times, 1);
    atomic_fetch_add(&g->elements, guess->elements);
    atomic_fetch_add(&g->chosen, guess->chosen);
}

void memsim_assumption(const struct guess *guess, const char *what)
{
    RECORD(GUESS, .name = guess->name, .device = guess->device,
           .stream = guess->stream, .elements = guess->elements,
           .chosen = guess->chosen);
    guess_count(guess, what);
    memsim_note("%s", what);
}
