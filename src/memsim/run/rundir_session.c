/* SPDX-License-Identifier: Apache-2.0
 * A session's file, which nobody has to have written well. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"
#include "common/trace/session_table.h"
#include "memsim/run/rundir_internal.h"

static int read_all(int fd, void *to, size_t bytes, size_t offset)
{
    char *at = to;

    while (bytes) {
        ssize_t n = pread(fd, at, bytes, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        bytes -= (size_t)n;
        offset += (size_t)n;
    }
    return 0;
}

static int session_check(const struct session *s, int rc, const char *name,
                         struct err *err)
{
    if (rc || memcmp(s->magic, SESSION_MAGIC, sizeof s->magic))
        return err_set(err, "%s: is not the session of a memsim run", name);
    if (s->version != SESSION_VERSION || s->bytes != sizeof *s)
        return err_set(err, "%s: written by another version of memsim", name);
    if (session_slots(s) > SESSION_SLOTS_MAX)
        return err_set(err, "%s: is damaged: %u processes", name,
                       session_slots(s));
    return 0;
}

static void clean_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    text_make_printable(text);
}

#define CLEAN(text) clean_text(text, sizeof(text))

static void process_clean(struct session_process *p)
{
    CLEAN(p->torch_version);
    CLEAN(p->program);
    CLEAN(p->unknown_where);
}

/* The session's texts come from a file: they must end, and be no more than
 * text. */
static void session_clean(struct session *s)
{
    CLEAN(s->gpu.name);
    CLEAN(s->gpu.device_name);
    CLEAN(s->directory);
    for (size_t i = 0; i < SESSION_NOTES; i++)
        CLEAN(s->notes[i].text);
    for (size_t i = 0; i < SESSION_GUESSES; i++) {
        CLEAN(s->guesses[i].operation);
        CLEAN(s->guesses[i].module);
        CLEAN(s->guesses[i].what);
    }
    for (size_t i = 0; i < SESSION_FILES; i++)
        CLEAN(s->files[i].path);
    for (uint32_t i = 0; i < session_slots(s); i++)
        process_clean(&s->processes[i]);
}

/* Tells the processes that live from those that were killed. A process gives up
 * its lock after it has written how it ended: what is read then is final. */
static void ends_mark(int fd, struct session *s)
{
    for (uint32_t i = 0; i < session_slots(s); i++) {
        struct session_process *p = &s->processes[i];
        size_t at = session_bytes(i) + offsetof(struct session_process, state);
        uint32_t state;

        if (atomic_load(&p->state) != SESSION_RUNNING ||
            session_slot_is_held(fd, i))
            continue;
        if (read_all(fd, &state, sizeof state, at) || state != SESSION_EXITED)
            atomic_store(&p->state, SESSION_KILLED);
        else if (!read_all(fd, p, sizeof *p, session_bytes(i)))
            process_clean(p);
    }
}

struct session *rundir_session_read(int fd, const char *name, struct err *err)
{
    struct session *s = xmalloc(sizeof *s);
    int rc = read_all(fd, s, sizeof *s, 0);

    if (session_check(s, rc, name, err)) {
        free(s);
        return NULL;
    }
    size_t bytes = session_bytes(session_slots(s));
    s = xreallocarray(s, bytes, 1);
    if (read_all(fd, s->processes, bytes - sizeof *s, sizeof *s)) {
        err_set(err, "%s: is cut short: of its %zu bytes the last are missing",
                name, bytes);
        free(s);
        return NULL;
    }
    session_clean(s);
    ends_mark(fd, s);
    return s;
}
