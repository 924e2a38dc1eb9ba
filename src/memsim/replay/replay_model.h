/* SPDX-License-Identifier: Apache-2.0
 * A device for the allocator engine: so much memory, at addresses that a
 * driver would choose. */
#ifndef MEMSIM_MEMSIM_REPLAY_MODEL_H
#define MEMSIM_MEMSIM_REPLAY_MODEL_H

#include "common/base/map.h"
#include "common/catalogue/vaspace.h"
#include "memsim/alloc/alloc.h"
#include "memsim/replay/replay.h"

struct replay_model {
    struct vaspace space;    /* cudaMalloc */
    struct vaspace reserved; /* cuMemAddressReserve */
    uint64_t capacity_bytes, other_bytes, mapped_bytes;
    uint64_t first_bytes;   /* of OTHER, what was there before the recording */
    uint64_t refused_bytes; /* the last request that found no memory */
    uint64_t peak_used_bytes;
    struct map others; /* our address by the recorded one */
};

/* A device of CONFIG's memory, with what INITIAL's segments of DEVICE take. 0,
 * or -1 where that does not fit. */
int replay_model_init(struct replay_model *m,
                      const struct replay_config *config,
                      const struct snapshot *initial, unsigned device,
                      const char *name, struct err *err);
void replay_model_fini(struct replay_model *m);

struct alloc_driver replay_model_driver(struct replay_model *m);

/* All that the GPU would show as used. */
uint64_t replay_model_used(const struct replay_model *m);

/* Memory of others, by its recorded address; without one (0) it takes memory
 * but no addresses. False: there was none. */
bool replay_model_other_alloc(struct replay_model *m, uint64_t address,
                              uint64_t bytes);
void replay_model_other_free(struct replay_model *m, uint64_t address);

/* All memory is given back, contexts' and libraries' too. The allocator, which
 * does not know of it, may give back later what is gone. */
void replay_model_reset(struct replay_model *m);

#endif
