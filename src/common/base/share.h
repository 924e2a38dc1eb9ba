/* SPDX-License-Identifier: Apache-2.0
 * Where memsim's own data files lie: catalogues, fits, injected Python. */
#ifndef MEMSIM_COMMON_SHARE_H
#define MEMSIM_COMMON_SHARE_H

#include <stddef.h>

struct err;

/* Writes the path of SUB ("gpus", "clusters/x.json") in the data directory to
 * PATH: $MEMSIM_SHARE where that is set, else ../share/memsim beside the
 * running program's directory (as installed), else ../../data (in the build
 * tree, build*\/bin/memsim or build*\/tests/unit/test_x). Returns 0, or -1
 * where none of them is there or SIZE is too small. For the programs only: it
 * reads the environment. */
int share_path(const char *sub, char *path, size_t size, struct err *err);

#endif
