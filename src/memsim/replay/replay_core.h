/* SPDX-License-Identifier: Apache-2.0
 * One device of a replay: an engine, and the recorded blocks by address. */
#ifndef MEMSIM_MEMSIM_REPLAY_REPLAY_CORE_H
#define MEMSIM_MEMSIM_REPLAY_REPLAY_CORE_H

#include "common/base/map.h"
#include "memsim/replay/replay.h"

struct replay_core {
    struct alloc *engine; /* NULL: the device was not used yet */
    unsigned device;
    const char *name;          /* of the recording */
    struct map blocks;         /* struct alloc_block by recorded address */
    struct map waiting;        /* struct replay_wait, likewise */
    struct replay_wait *waits; /* all whose tickets the engine holds */
    uint64_t freeing;          /* recorded address of the free in progress */
    uint64_t next_stream;
};

/* The driver of an engine, and its listener (NULL: none). */
struct replay_base {
    struct alloc_driver driver; /* without its event calls */
    alloc_listener *listener;
    void *listener_context;
};

/* Adds SOURCE's initial segments of DEVICE. Returns 0 or -1. */
int replay_core_init(struct replay_core *c, unsigned device,
                     const struct replay_source *source,
                     const struct replay_config *config,
                     const struct replay_base *base, struct err *err);
void replay_core_fini(struct replay_core *c);

/* Each replays one step. alloc's *BLOCK is NULL if memory ran out. -1: the
 * recording is impossible. */
int replay_core_alloc(struct replay_core *c, const struct replay_op *op,
                      struct alloc_block **block, struct err *err);
int replay_core_free(struct replay_core *c, const struct replay_op *op,
                     struct err *err);
void replay_core_free_done(struct replay_core *c, const struct replay_op *op);

/* Applies OP, a REPLAY_SETTINGS of the recording NAME, to CONF. 0 or -1. */
int replay_op_apply(const struct replay_op *op, const char *name,
                    const struct alloc_rules *rules, struct alloc_conf *conf,
                    struct err *err);

/* Returns -1 for sizes and devices that no recording can have. */
int replay_op_check(const struct replay_op *op, const char *name,
                    struct err *err);

#endif
