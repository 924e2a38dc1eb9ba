/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/values_return.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/memory/host.h"
#include "capture/core/memory/values.h"

#define NOTES      256 /* a new one takes the place of an old one */
#define MIXED_MAX  (UINT64_C(64) << 10) /* of bytes with marks of their own */

static struct note {
    uint64_t host, bytes, hash; /* bytes 0: there is none */
    bool is_float;
    unsigned char mark;   /* of all bytes, where they have none of their own */
    unsigned char *marks; /* of each byte */
} notes[NOTES];

/* Fibonacci hashing, as neighbours are multiples of 64. */
static struct note *note_at(uint64_t host)
{
    return &notes[host * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

/* FNV-1a of words; ZERO where all bytes are. */
static uint64_t content(uint64_t host, uint64_t bytes, bool *zero)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), any = 0, word;

    for (uint64_t i = 0; i < bytes; i += sizeof word) {
        word = 0;
        memcpy(&word, (const char *)host + i,
               bytes - i < sizeof word ? bytes - i : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        any |= word;
    }
    *zero = !any;
    return hash;
}

static void note_end(struct note *note)
{
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

/* Pinned memory is used again without being freed: there, zeros may as well be
 * other ones. */
static bool is_told_apart(uint64_t host, bool zero)
{
    struct host_range range;

    return !zero || !memsim_host_find(host, &range);
}

void values_return_note(uint64_t host, uint64_t source, uint64_t bytes,
                        bool is_float)
{
    struct note new = {.host = host, .is_float = is_float};
    bool zero;

    values_return_end(host);
    if (bytes > VALUES_COPY_BYTES || !marks_read(&new, source, bytes))
        return;
    new.bytes = bytes;
    new.hash = content(host, bytes, &zero);
    bool keep = is_told_apart(host, zero);
    core_lock(LOCK_RETURN);
    struct note *note = note_at(host);
    note_end(keep ? note : &new);
    if (keep)
        *note = new;
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

static void note_copy(const struct note *note, uint64_t destination)
{
    uint64_t start = 0, stop;

    for (; start < note->bytes; start = stop) {
        unsigned char mark = note->marks ? note->marks[start] : note->mark;

        for (stop = start + 1; stop < note->bytes &&
                               (!note->marks || note->marks[stop] == mark);)
            stop++;
        piece_copy(destination + start, note->host + start, stop - start, mark,
                   note->is_float);
    }
}

bool values_return_copy(uint64_t destination, uint64_t host, uint64_t bytes)
{
    const struct note *note = note_at(host);
    bool found = false, zero;

    if (__atomic_load_n(&note->host, __ATOMIC_RELAXED) != host)
        return false;
    core_lock(LOCK_RETURN);
    if (note->host == host && note->bytes == bytes &&
        note->hash == content(host, bytes, &zero)) {
        note_copy(note, destination);
        found = true;
    }
    core_unlock(LOCK_RETURN);
    return found;
}

void values_return_end(uint64_t host)
{
    struct note *note = note_at(host);

    if (__atomic_load_n(&note->host, __ATOMIC_RELAXED) != host)
        return;
    core_lock(LOCK_RETURN);
    if (note->host == host)
        note_end(note);
    core_unlock(LOCK_RETURN);
}
