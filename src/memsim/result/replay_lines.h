/* SPDX-License-Identifier: Apache-2.0
 * What a replay has in memory at the peak, or when memory runs out, by the
 * lines of Python that allocated it. */
#ifndef MEMSIM_MEMSIM_RESULT_REPLAY_LINES_H
#define MEMSIM_MEMSIM_RESULT_REPLAY_LINES_H

#include "memsim/replay/recording.h"

struct replay_line {
    char *text; /* "train.py:31 forward", or "aten::add of blocks.0" where the
                   recording has no line; a folded stack */
    uint64_t bytes;
    size_t blocks;
};

struct replay_lines {
    struct replay_line *rows; /* the largest first */
    size_t count;
    struct replay_line *folded; /* whole stacks, see flame.h */
    size_t folded_count;
    bool known; /* a block has a stack */
};

/* Returns 0 with *LINES to be given to replay_lines_fini, or -1. */
int replay_lines_find(struct replay_lines *lines, const struct recording *rec,
                      struct err *err);
void replay_lines_fini(struct replay_lines *lines);

#endif
