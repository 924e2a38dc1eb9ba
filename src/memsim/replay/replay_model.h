/* SPDX-License-Identifier: Apache-2.0
 * A device for the allocator engine, with a given memory and with addresses as
 * the driver would choose them. */
#ifndef MEMSIM_MEMSIM_REPLAY_REPLAY_MODEL_H
#define MEMSIM_MEMSIM_REPLAY_REPLAY_MODEL_H

#include "common/base/map.h"
#include "common/catalogue/vaspace.h"
#include "memsim/alloc/alloc.h"
#include "memsim/replay/replay.h"

/* A segment that the recording's device gave. */
struct replay_given {
    uint64_t address, bytes;
};

struct replay_model {
    struct vaspace space;    /* cudaMalloc */
    struct vaspace reserved; /* cuMemAddressReserve */
    uint64_t capacity_bytes, other_bytes, mapped_bytes;
    uint64_t first_bytes;   /* the part of OTHER from before the recording */
    uint64_t refused_bytes; /* the last request that failed */
    uint64_t peak_used_bytes;
    struct map others; /* our address by the recorded one */

    /* While it follows the recording: the segments that it gave since the last
     * request, and our address of each by the recorded one. */
    bool follows, departed;
    struct replay_given *given;
    size_t given_first, given_count, given_capacity;
    struct map followed;
};

/* Makes a device with CONFIG's memory, of which INITIAL's segments of DEVICE
 * are used. Returns 0, or -1 if they do not fit. */
int replay_model_init(struct replay_model *m,
                      const struct replay_config *config,
                      const struct snapshot *initial, unsigned device,
                      const char *name, struct err *err);
void replay_model_fini(struct replay_model *m);

struct alloc_driver replay_model_driver(struct replay_model *m);

/* The bytes that the GPU would show as used. */
uint64_t replay_model_used(const struct replay_model *m);

/* Memory that is not the allocator's, by its recorded address. Without an
 * address (0) it uses memory but no addresses. False: no memory. */
bool replay_model_other_alloc(struct replay_model *m, uint64_t address,
                              uint64_t bytes);
void replay_model_other_free(struct replay_model *m, uint64_t address);

/* The recording's device gave a segment for the request that comes next. A
 * model that follows the recording (`follows`) gives the same address. */
void replay_model_give(struct replay_model *m, uint64_t address,
                       uint64_t bytes);

/* A request is over: what was given for it and not asked for, or asked for and
 * not given, makes the model `departed`. */
void replay_model_asked(struct replay_model *m);

/* Frees all memory, also that of contexts and libraries. The allocator does not
 * know of it and may later free memory that is already freed. */
void replay_model_reset(struct replay_model *m);

#endif
