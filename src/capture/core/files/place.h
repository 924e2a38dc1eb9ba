/* SPDX-License-Identifier: Apache-2.0
 * Where a path leads, as the program sees it: a root, and all below it, is in
 * the copies' tree. An entry there that the run has not changed is a link to
 * the user's, whose text begins with "//": it stands in for that. */
#ifndef MEMSIM_CAPTURE_CORE_FILES_PLACE_H
#define MEMSIM_CAPTURE_CORE_FILES_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "common/trace/session.h"
#include "common/trace/session_files.h"

struct place {
    char path[PATH_MAX]; /* absolute, links followed, as the program sees it */
    char real[PATH_MAX]; /* what is there: itself, its copy, the user's */
    bool copied;         /* the path is in the copies' tree */
    bool is_copy;        /* REAL is there, and no stand-in */
};

/* Finds where PATH leads, from DIRECTORY as openat() does; FOLLOW: also what a
 * link at its end points to. False: nowhere that is of interest. */
bool place_find(const struct session *s, int directory, const char *path,
                bool follow, struct place *p);

/* The path of PATH's copy, in OUT of PATH_MAX bytes. False: too long. */
bool place_copy(const struct session *s, const char *path, char *out);

/* Appends NAME, of LENGTH bytes, to PATH of PATH_MAX bytes. */
bool place_join(char *path, const char *name, size_t length);

/* lstat(). Like all here, past the program's calls and ours. */
bool place_stat(const char *path, struct stat *st);

/* What the link PATH says, in TEXT of PATH_MAX bytes; false: it is no link. */
bool place_link(const char *path, char *text);

/* The table of places (session_files.h). */
bool place_known(enum place_kind kind, uint64_t hash);
void place_add(enum place_kind kind, uint64_t hash);
static inline bool place_is_root(const char *path)
{
    return place_known(PLACE_ROOT, place_hash_path(path));
}

/* Appends a record to the log of changes; TO may be NULL. */
void place_log(char change, const char *path, const char *to);

#endif
