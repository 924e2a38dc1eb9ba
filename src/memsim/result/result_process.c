/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/result_process.h"
#include "memsim/result/result_cards.h"
#include "memsim/result/result_verdict.h"

#include <signal.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/run/ended.h"

#define NAMED 3 /* files that a note names; --json has all */

/* --- files ---------------------------------------------------------------- */

static uint64_t unknown_reads(const struct session *s)
{
    uint64_t reads = 0;

    for (uint32_t i = 0; i < session_slots(s); i++)
        reads += atomic_load(&s->processes[i].unknown_reads);
    return reads;
}

static void files_collect(struct result *r, const struct session *s)
{
    uint32_t count = session_used(&s->file_count, SESSION_FILES);

    for (uint32_t i = 0; i < count; i++) {
        const struct session_file *f = &s->files[i];
        enum session_file_kind kind = atomic_load(&f->kind);

        if (!atomic_load(&f->ready) ||
            (kind == SESSION_FILE_WRITTEN && !unknown_reads(s)))
            continue;
        r->files = xreallocarray(r->files, r->file_count + 1, sizeof *r->files);
        r->files[r->file_count++] = (struct result_file_written){
            .path = xasprintf("%.*s", SESSION_PATH_BYTES - 1, f->path),
            .kind = kind,
        };
    }
}

/* The first of R's files of KIND, and how many there are more. */
static char *file_names(const struct result *r, enum session_file_kind kind,
                        size_t *count)
{
    char *text = xstrdup("");

    *count = 0;
    for (size_t i = 0; i < r->file_count; i++) {
        if (r->files[i].kind != kind)
            continue;
        if (++*count > NAMED)
            continue;
        char *longer =
            xasprintf("%s%s%s", text, *count > 1 ? ", " : "", r->files[i].path);
        free(text);
        text = longer;
    }
    if (*count > NAMED) {
        char *longer = xasprintf("%s and %zu more", text, *count - NAMED);
        free(text);
        text = longer;
    }
    return text;
}

static void files_note(struct result *r, const struct session *s)
{
    size_t count;
    char *names;

    files_collect(r, s);
    names = file_names(r, SESSION_FILE_KEPT, &count);
    if (count)
        result_note(r,
                    "kept as %s: %s. What the command changed there, and all "
                    "else that it wrote to %s, is below " SESSION_SCRATCH
                    "/ in the run's directory (-o DIR keeps it); "
                    "--write-through overwrites",
                    count > 1 ? "they were" : "it was", names,
                    count > 1 ? "their directories" : "its directory");
    free(names);
    names = file_names(r, SESSION_FILE_TAKEN, &count);
    if (count)
        result_note(r,
                    "taken away after the run: %s. Such checkpoints have "
                    "values that memsim does not compute, and training would "
                    "resume from them; -o DIR keeps them below " SESSION_SCRATCH
                    "/, --write-through leaves them",
                    names);
    free(names);
    names = file_names(r, SESSION_FILE_WRITTEN, &count);
    if (count)
        result_note(r,
                    "written with values that memsim does not compute: %s; do "
                    "not use %s",
                    names, count > 1 ? "them" : "it");
    free(names);
    if (atomic_load(&s->file_count) > SESSION_FILES)
        result_note(r, "%u files were written; only the first %d are here",
                    atomic_load(&s->file_count), SESSION_FILES);
}

/* --- reads ---------------------------------------------------------------- */

/* The user ended it: that is no fault of a value. */
static bool was_interrupted(const struct result *r)
{
    return r->command_status == ended_by(SIGINT);
}

static void reads_note(struct result *r, const struct session *s)
{
    uint64_t reads = unknown_reads(s);
    const char *where = NULL;

    if (r->verdict != VERDICT_FAILED || !reads || was_interrupted(r))
        return;
    for (uint32_t i = session_slots(s); i-- > 0 && !where;)
        if (s->processes[i].unknown_where[0])
            where = s->processes[i].unknown_where;
    result_note(r,
                "before it failed, the command had read %llu value%s that "
                "memsim does not compute%s%s: see --unknown-value and "
                "doc/values.md",
                (unsigned long long)reads, reads > 1 ? "s" : "",
                where ? ", last at " : "", where ? where : "");
}

/* A size or an index that was guessed may be what the command failed of. */
static void guesses_note(struct result *r, const struct session *s)
{
    uint32_t places = atomic_load(&s->guess_count);

    if (r->verdict != VERDICT_FAILED || !places || was_interrupted(r))
        return;
    result_note(r,
                "before it failed, memsim had guessed sizes or choices at %u "
                "place%s, listed as guesses: --assume FILE:LINE=X sets one",
                places, places > 1 ? "s" : "");
}

void result_process_notes(struct result *r, const struct session *s)
{
    result_failure_notes(r);
    result_strays_note(r);
    reads_note(r, s);
    guesses_note(r, s);
    files_note(r, s);
}
