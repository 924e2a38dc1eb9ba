/* SPDX-License-Identifier: Apache-2.0
 * A script's checkpoints are not overwritten with values that no GPU computed.
 *
 * A checkpoint is a regular file named *.pt, *.safetensors and the like that
 * was there before the run. What the run writes to it goes to a copy in the
 * run's directory, SCRATCH_DIRECTORY plus its absolute path, and the run's
 * later opens, stats and renames of that path see the copy. A checkpoint that
 * the run removes stays too; a marker beside the copy's place says that it is
 * gone. Files that the run creates are its own and lie where it put them.
 *
 * There is no table: whether a copy or a marker exists decides, so that all
 * processes of a run agree. Nothing here touches the heap; a path whose name
 * has another ending costs one look at that ending. */
#ifndef MEMSIM_CAPTURE_SCRATCH_H
#define MEMSIM_CAPTURE_SCRATCH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "capture/core/base/core.h"

/* Room for a path that stands in for another. */
struct scratch_room {
    char path[PATH_MAX];
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

/* The same for Python, of a file that is to be written anew: the path to use in
 * OUT, of PATH_MAX bytes. Returns 0 or errno. */
CORE_API int memsim_scratch_path(const char *path, char *out);

/* Removing a file. Returns true where nothing is left to do, with *RESULT 0 or
 * -1 and errno. */
bool scratch_unlink(int directory, const char *path, int *result);

/* rmdir() of PATH failed with ENOTEMPTY: whether all that it still has are
 * checkpoints that the run has removed. */
bool scratch_rmdir(int directory, const char *path);

/* One side of a rename. */
struct scratch_end {
    int directory;
    const char *path;
};

/* Like scratch_unlink, for rename(). */
bool scratch_rename(struct scratch_end from, struct scratch_end to,
                    int *result);

#endif
