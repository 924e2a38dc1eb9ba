/* SPDX-License-Identifier: Apache-2.0
 * Which files are a user's checkpoints: by directory, at the first look. A
 * directory that holds a checkpoint, itself or in a directory of its own, is
 * kept with all below it, three levels deep. What the run makes is its own. */
#ifndef MEMSIM_CAPTURE_CORE_FILES_JUDGE_H
#define MEMSIM_CAPTURE_CORE_FILES_JUDGE_H

#include "capture/core/files/place.h"

/* By the name alone: a file of tensors that training resumes from, or one that
 * says which; and any file that usually holds tensors. */
bool judge_is_checkpoint(const char *path);
bool judge_is_data(const char *path);

/* Whether the path of P, which is in no copies' tree, must be kept; then *ROOT
 * is what to copy: P's path, or one that it is below. CONTENT: the file's
 * content is about to change, not only its name. */
bool judge_root(const struct session *s, const struct place *p, bool content,
                char root[PATH_MAX]);

/* Whether the file PATH was there before the run: by its birth, where the file
 * system knows it. */
bool judge_is_older(const struct session *s, const char *path);

#endif
