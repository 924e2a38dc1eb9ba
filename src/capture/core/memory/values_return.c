/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/values_return.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/memory/values.h"

#define NOTES     4096 /* a new one takes the place of an old one */
#define WAYS      8    /* places that a note may have, in a row */
#define MIXED_MAX (UINT64_C(64) << 10) /* of bytes with marks of their own */

/* Where each note's bytes lie, or 0: there is none. Each free of PyTorch's
 * looks at one line of the cache here. */
static _Atomic uint64_t hosts[NOTES] __attribute__((aligned(64)));

static struct note {
    uint64_t bytes, hash;
    bool is_float;
    unsigned char mark;   /* of all bytes, where they have none of their own */
    unsigned char *marks; /* of each byte */
} notes[NOTES];

static atomic_bool any;

bool values_return_any(void)
{
    return atomic_load_explicit(&any, memory_order_relaxed);
}

/* The first of the places that the note of HOST may have. Fibonacci hashing, as
 * neighbours are multiples of 64. */
static unsigned first_place(uint64_t host)
{
    return (unsigned)(host * UINT64_C(0x9e3779b97f4a7c15) >> 55) * WAYS;
}

/* The note of HOST, or NULL. */
static struct note *note_of(uint64_t host)
{
    unsigned first = first_place(host);

    for (unsigned i = first; host && i < first + WAYS; i++)
        if (atomic_load_explicit(&hosts[i], memory_order_relaxed) == host)
            return &notes[i];
    return NULL;
}

/* FNV-1a of words. */
static uint64_t hash_content(uint64_t host, uint64_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), word;

    for (uint64_t i = 0; i < bytes; i += sizeof word) {
        word = 0;
        memcpy(&word, (const char *)host + i,
               bytes - i < sizeof word ? bytes - i : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Under the lock. */
static void note_end(struct note *note)
{
    hosts[note - notes] = 0;
    if (note->marks)
        munmap(note->marks, note->bytes);
    *note = (struct note){0};
}

/* The marks of BYTES at SOURCE: in NOTE's one, or in pages of their own. */
static bool marks_read(struct note *note, uint64_t source, uint64_t bytes)
{
    const struct values_window *w = values_window(source);
    uint64_t at = w ? source - w->base : 0, i = 1;

    if (!w || bytes > w->bytes - at)
        return false;
    if (!values_some(w, at, bytes))
        return true; /* no byte has a mark */
    note->mark = values_known_at(w, at);
    while (i < bytes && values_known_at(w, at + i) == note->mark)
        i++;
    if (i == bytes || bytes > MIXED_MAX)
        return i == bytes;
    note->marks = memsim_pages_reserve(0, bytes);
    for (i = 0; note->marks && i < bytes; i++)
        note->marks[i] = values_known_at(w, at + i);
    return note->marks;
}

/* A place for a note of HOST: a free one, or each in turn. Under the lock. */
static struct note *note_place(uint64_t host)
{
    static unsigned turn;
    unsigned first = first_place(host);

    for (unsigned i = first; i < first + WAYS; i++)
        if (!hosts[i])
            return &notes[i];
    struct note *note = &notes[first + turn++ % WAYS];
    note_end(note);
    return note;
}

void values_return_note(uint64_t host, uint64_t source, uint64_t bytes,
                        bool is_float)
{
    struct note new = {.bytes = bytes, .is_float = is_float};

    values_return_end(host);
    if (bytes > VALUES_COPY_BYTES || !marks_read(&new, source, bytes))
        return;
    new.hash = hash_content(host, bytes);
    core_lock(LOCK_RETURN);
    struct note *note = note_place(host);
    *note = new;
    hosts[note - notes] = host;
    any = true;
    core_unlock(LOCK_RETURN);
}

/* COUNT bytes of the same MARK. What is not known and floating is zero on a
 * GPU, where the script has a number of a series. */
static void piece_copy(uint64_t destination, uint64_t host, uint64_t count,
                       unsigned char mark, bool is_float)
{
    bool known = values_is_known(mark);
    char *to = known || !is_float ? values_write_as(destination, count, mark)
                                  : NULL;

    if (to)
        memcpy(to, (const char *)host, count);
    else
        memsim_values_forget(destination, count);
}

static void note_copy(const struct note *note, uint64_t destination,
                      uint64_t host)
{
    uint64_t start = 0, stop;

    for (; start < note->bytes; start = stop) {
        unsigned char mark = note->marks ? note->marks[start] : note->mark;

        for (stop = start + 1; stop < note->bytes &&
                               (!note->marks || note->marks[stop] == mark);)
            stop++;
        piece_copy(destination + start, host + start, stop - start, mark,
                   note->is_float);
    }
}

bool values_return_copy(uint64_t destination, uint64_t host, uint64_t bytes)
{
    bool found = false;

    if (!note_of(host))
        return false;
    core_lock(LOCK_RETURN);
    const struct note *note = note_of(host);
    if (note && note->bytes == bytes &&
        note->hash == hash_content(host, bytes)) {
        note_copy(note, destination, host);
        found = true;
    }
    core_unlock(LOCK_RETURN);
    return found;
}

void values_return_end(uint64_t host)
{
    if (!note_of(host))
        return;
    core_lock(LOCK_RETURN);
    struct note *note = note_of(host);
    if (note)
        note_end(note);
    core_unlock(LOCK_RETURN);
}

void values_return_end_all(uint64_t host, uint64_t bytes)
{
    if (!values_return_any())
        return;
    core_lock(LOCK_RETURN);
    for (unsigned i = 0; i < NOTES; i++)
        if (hosts[i] && hosts[i] - host < bytes)
            note_end(&notes[i]);
    core_unlock(LOCK_RETURN);
}
