/* SPDX-License-Identifier: Apache-2.0
 * The copies' tree. A root is a path that is there from then on; a directory
 * comes with an entry for each of the user's, which stands in for it (place.h)
 * until the run changes it. All functions return 0, or -1 with errno set. */
#ifndef MEMSIM_CAPTURE_CORE_FILES_MIRROR_H
#define MEMSIM_CAPTURE_CORE_FILES_MIRROR_H

#include "capture/core/files/place.h"

/* Makes PATH a root, whether or not there is something. */
int mirror_root(const struct session *s, const char *path);

/* Has all directories above PATH, up to its root, in the copies' tree. */
int mirror_parents(const struct session *s, const char *path);

/* Puts a directory of its own in the place of what stands in for PATH. */
int mirror_directory(const struct session *s, const char *path);

/* Puts a copy of USERS, a regular file, in the place of what stands in for
 * PATH; without its content where that is not KEPT. */
int mirror_file(const struct session *s, const char *path, const char *users,
                bool kept);

/* Copies SOURCE with its MODE and times to TARGET, which appears whole or not
 * at all. */
int mirror_copy_whole(const char *source, const struct stat *st,
                      const char *target);

#endif
