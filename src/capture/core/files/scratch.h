/* SPDX-License-Identifier: Apache-2.0
 * A script's checkpoints are not changed by a run, whose values no GPU
 * computed. What the run writes, removes or renames in a directory that held a
 * checkpoint before the run (judge.h) goes to the copies' tree: in the run's
 * directory, SESSION_SCRATCH plus the absolute path (mirror.h). The run's later
 * calls find it there, under its own name. What the run makes elsewhere lies
 * where it put it until it ends; `memsim run` then takes its checkpoints away.
 * What a run without a GPU changed is put in place.
 *
 * Files decide, so that all processes of a run agree. Nothing here touches the
 * heap. Until something is in the copies' tree, a call that only looks costs a
 * comparison. */
#ifndef MEMSIM_CAPTURE_CORE_FILES_SCRATCH_H
#define MEMSIM_CAPTURE_CORE_FILES_SCRATCH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "capture/core/base/core.h"

/* Room for a path that stands in for another. */
struct scratch_room {
    char path[PATH_MAX];
};

/* What a call does with a path. */
enum scratch_use {
    SCRATCH_CONTENT, /* changes what is there, a link's target */
    SCRATCH_ITSELF,  /* changes what is there, a link itself */
    SCRATCH_MAKE,    /* makes an entry: mkdir() and the like */
    SCRATCH_REMOVE,  /* removes an entry */
};

/* Each returns the path that the call is to use: PATH itself, or an absolute
 * one in ROOM; NULL with errno set where the call is to fail. DIRECTORY is that
 * of openat() or AT_FDCWD. */

/* For a call that looks at PATH; FOLLOW: at what a link points to. */
const char *scratch_look(int directory, const char *path, bool follow,
                         struct scratch_room *room);

/* For open() with FLAGS. */
const char *scratch_open(int directory, const char *path, int flags,
                         struct scratch_room *room);

/* For a call that changes something. */
const char *scratch_change(int directory, const char *path,
                           enum scratch_use use, struct scratch_room *room);

/* The same of the open file FD; NULL with errno 0: FD itself is to be used. */
const char *scratch_change_fd(int fd, struct scratch_room *room);

/* The same for Python, of a file that is to be written anew: the path to use in
 * OUT, of PATH_MAX bytes. Returns 0 or errno. */
CORE_API int memsim_scratch_path(const char *path, char *out);

/* mkdir() made PATH. */
void scratch_made(int directory, const char *path);

/* rmdir() of PATH failed with ENOTEMPTY: the path to try it with where what it
 * still has are the user's, which the run has removed; else NULL. */
const char *scratch_rmdir(int directory, const char *path,
                          struct scratch_room *room);

/* The program's own path for TEXT, one that the kernel gave; in place. */
void scratch_unmap(char *text);

/* One side of a rename or a link, and the path to use for it. */
struct scratch_end {
    int directory;
    const char *path;
    struct scratch_room room;
};

enum scratch_pair {
    SCRATCH_RENAME,
    SCRATCH_EXCHANGE,
    SCRATCH_LINK,
};

/* Sets both paths to those that the call is to use, with AT_FDCWD for one that
 * has changed. Returns -1 with errno where it is to fail, 1 where all is done,
 * else 0. */
int scratch_pair(enum scratch_pair pair, struct scratch_end *from,
                 struct scratch_end *to);

#endif
