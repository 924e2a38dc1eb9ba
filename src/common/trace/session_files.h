/* SPDX-License-Identifier: Apache-2.0
 * What a run knows of files (capture/core/files/scratch.h), in two files of its
 * directory that all its processes share:
 *
 * SESSION_PLACES is a table of hashes: of the paths whose content is in the
 * copies' tree, and of directories by inode. Its entries are set once and never
 * removed; all of it is allocated before the command starts.
 *
 * SESSION_CHANGES is a log of records, each a letter and one or two paths that
 * end with a NUL, appended in one write. `memsim run' reads it at the end. */
#ifndef MEMSIM_COMMON_TRACE_SESSION_FILES_H
#define MEMSIM_COMMON_TRACE_SESSION_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SESSION_PLACES  "places"
#define SESSION_CHANGES "changes"
#define PLACES_COUNT    (1u << 16)
#define PLACES_BYTES    (PLACES_COUNT * sizeof(uint64_t))

enum place_kind {
    PLACE_ROOT,   /* a path: it and all below it are in the copies' tree */
    PLACE_MADE,   /* a path: the run made this file */
    PLACE_PLAIN,  /* a directory that held no checkpoint at the first look */
    PLACE_MADE_DIRECTORY, /* that the run made */
};

/* The letters of SESSION_CHANGES. */
#define CHANGE_ROOT    '=' /* PATH became a root */
#define CHANGE_MADE    '+' /* the run made the checkpoint PATH */
#define CHANGE_LEFT    '-' /* the run made PATH and renamed it into the tree */
#define CHANGE_RENAMED '>' /* FROM TO: outside the copies' tree */

typedef _Atomic uint64_t place_entry; /* 0: free */

/* FNV-1a, a byte at a time. */
#define PLACE_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t place_hash_byte(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

static inline uint64_t place_hash_path(const char *path)
{
    uint64_t hash = PLACE_HASH_START;

    for (; *path; path++)
        hash = place_hash_byte(hash, (unsigned char)*path);
    return hash;
}

static inline uint64_t place_hash_inode(uint64_t device, uint64_t inode)
{
    uint64_t hash = PLACE_HASH_START;

    for (int i = 0; i < 8; i++) {
        hash = place_hash_byte(hash, (unsigned char)(device >> 8 * i));
        hash = place_hash_byte(hash, (unsigned char)(inode >> 8 * i));
    }
    return hash;
}

/* An entry is never 0: its lowest bit is set. */
static inline uint64_t place_value(enum place_kind kind, uint64_t hash)
{
    return (hash << 3) | (uint64_t)kind << 1 | 1;
}

/* Looks up HASH in TABLE and, where ADD, adds it. Returns whether it was there;
 * a full table has nothing more. */
static inline bool place_seek(place_entry *table, enum place_kind kind,
                              uint64_t hash, bool add)
{
    uint64_t value = place_value(kind, hash);

    for (uint32_t i = 0; i < PLACES_COUNT; i++) {
        place_entry *entry = &table[(hash + kind + i) % PLACES_COUNT];
        uint64_t there = atomic_load(entry);

        if (!there && (!add || atomic_compare_exchange_strong(entry, &there,
                                                              value)))
            return false;
        if (there == value)
            return true;
    }
    return false;
}

#endif
