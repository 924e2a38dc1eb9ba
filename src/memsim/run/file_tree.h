/* SPDX-License-Identifier: Apache-2.0
 * Files and directories with all below them. No link is followed. */
#ifndef MEMSIM_MEMSIM_RUN_FILE_TREE_H
#define MEMSIM_MEMSIM_RUN_FILE_TREE_H

/* Removes PATH. */
void file_tree_remove(const char *path);

/* Moves FROM to TO, which is not there, also to another file system, and makes
 * the directories above TO. Returns 0, or -1 with errno. */
int file_tree_move(const char *from, const char *to);

#endif
