/* SPDX-License-Identifier: Apache-2.0
 * Where memsim's own data files lie: catalogues, fits, injected Python. */
#ifndef MEMSIM_COMMON_BASE_SHARE_H
#define MEMSIM_COMMON_BASE_SHARE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

/* Writes the path of SUB ("gpus", "clusters/x.json") in the data directory to
 * PATH: $MEMSIM_SHARE where that is set, else ../share/memsim beside the
 * running program's directory (as installed), else ../../data (in the build
 * tree, build*\/bin/memsim or build*\/tests/unit/test_x). Returns 0, or -1
 * where none of them is there or SIZE is too small. For the programs only: it
 * reads the environment. */
int share_path(const char *sub, char *path, size_t size, struct err *err);

/* A library's data lies beside DIRECTORY, its own, and not beside the program
 * that loads it. */
void share_beside(const char *directory);

/* A user names a catalogue's file, "h100-sxm-80gb", or gives one of his own:
 * it has a slash or ends in ".json". */
bool share_is_path(const char *name_or_path);

/* For scandir: a catalogue's files, "NAME.json" that no dot begins. */
int share_select(const struct dirent *entry);

#endif
