/* SPDX-License-Identifier: Apache-2.0
 * The contents of device memory, as far as they are needed. Small copies, sets
 * and fills, and the small kernels of compute.h, are carried out in a shadow of
 * each GPU's address window; large ones are skipped. Memory that nothing wrote
 * reads as zeros, and so does a block that torch newly allocates.
 *
 * Each byte is known (it has the value that a real GPU would have there) or
 * not. An unknown byte still has a value, zero or computed from zeros, so that
 * every value read back is finite. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_VALUES_H
#define MEMSIM_CAPTURE_CORE_MEMORY_VALUES_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* Copies to the GPU over this many bytes make the destination unknown; those
 * that are known to be of integers, over the second. */
#define VALUES_COPY_BYTES     (UINT64_C(1) << 20)
#define VALUES_INTEGERS_BYTES (UINT64_C(16) << 20)

/* Likewise what kernels of compute.h write; fills have patterns above. */
#define VALUES_WRITE_BYTES (UINT64_C(256) << 10)

/* The shadow of a window: a byte at MEMORY for each of the GPU's, and one at
 * KNOWN: VALUES_GIVEN where it came from the host as it is, 1 where a kernel or
 * a fill wrote it, 0 where it is not known, and VALUES_COUNTS where it is not
 * known but of an integer or a flag, VALUES_ASSUMED where it is known as far as
 * a policy says what unknown values it came of are like. Both hold as far as
 * the state of their cell says so (values_cell.h). */
#define VALUES_GIVEN   2
#define VALUES_COUNTS  3
#define VALUES_ASSUMED 5

struct values_window {
    uint64_t base, bytes;
    char *memory; /* NULL where there was no room */
    unsigned char *known;
    unsigned char *cells;    /* enum cell_state, of each 512 bytes; NULL:
                              * managed memory, all of which is known */
    unsigned char *granules; /* enum granule_state, of each 2 MiB */
};

#define VALUES_GRANULE (UINT64_C(2) << 20)

/* Gives DEVICE's window its shadow. Without address space for it there are no
 * values: everything reads as zeros. */
void values_place(int device, uint64_t base, uint64_t bytes);

/* The same of a real GPU: its addresses are known, and no values. */
void values_place_real(int device, uint64_t base, uint64_t bytes);

/* From BASE on lies managed memory, which the host and kernels share: MEMORY is
 * itself, and nothing is known to be unknown. */
void values_place_managed(uint64_t base, uint64_t bytes);

/* ADDRESS may lie in any device's window or, for copies, in host memory. */
CORE_API void memsim_values_copy(uint64_t destination, uint64_t source,
                                 uint64_t bytes);

/* Copies BYTES of integers from the host; false where they are too many. What
 * repeats its first UNIT bytes, if not 0, may be of any size. */
bool values_give_integers(uint64_t destination, uint64_t source, uint64_t bytes,
                          uint64_t unit);

/* Repeats the UNIT bytes (1, 2, 4, 8 or 16) at VALUE, COUNT times. */
CORE_API void memsim_values_fill(uint64_t address, const void *value,
                                 uint64_t unit, uint64_t count);

/* The same, with a mark: VALUES_ASSUMED and so on. */
void values_fill_as(uint64_t address, const void *value, uint64_t unit,
                    uint64_t count, unsigned char mark);

/* Whether BYTES at ADDRESS are known and repeat their first UNIT bytes, which
 * go to VALUE: their mark, or 0. */
unsigned char values_constant(uint64_t address, uint64_t bytes, uint64_t unit,
                              void *value);

/* Makes BYTES at ADDRESS unknown; they read as zeros. */
CORE_API void memsim_values_forget(uint64_t address, uint64_t bytes);

/* The same, but of what did not come from the host as it is. */
void values_forget_made(uint64_t address, uint64_t bytes);

/* The window that holds ADDRESS and has a shadow, or managed memory's, or
 * NULL. */
const struct values_window *values_window(uint64_t address);

/* Whether BYTES at ADDRESS, all in one window, are known. */
bool values_known(uint64_t address, uint64_t bytes);

static inline bool values_is_known(unsigned char mark)
{
    return mark && mark != VALUES_COUNTS;
}

/* BYTES at ADDRESS, which were written, are not known: integers or flags. */
void values_mark_counts(uint64_t address, uint64_t bytes);

/* BYTES at ADDRESS, where all are known, are so as far as a policy says. */
void values_mark_assumed(uint64_t address, uint64_t bytes);

/* False where nothing near ADDRESS can be known. */
bool values_may_hold(uint64_t address);

/* False where none of BYTES, AT bytes into W's window, can be known. */
bool values_some(const struct values_window *w, uint64_t at, uint64_t bytes);

/* What BYTES (not 0) at AT hold, and what the byte at KNOWN would say of
 * AT. */
const char *values_at(const struct values_window *w, uint64_t at,
                      uint64_t bytes);
unsigned char values_known_at(const struct values_window *w, uint64_t at);

/* Where the bytes at ADDRESS are kept, about to be written, all of
 * them, and known from then on where KNOWN; NULL where they have no place. */
char *values_write(uint64_t address, uint64_t bytes, bool known);

/* The same, with a mark: VALUES_GIVEN and so on. */
char *values_write_as(uint64_t address, uint64_t bytes, unsigned char mark);

/* Called before BYTES at ADDRESS are forgotten; NULL: nobody wants to know. */
extern void (*values_forgotten)(uint64_t address, uint64_t bytes);

/* BYTES at ADDRESS are random numbers, uniform from 0 to 1, and not known: true
 * until any of it is written or forgotten, and of the last such call. */
void values_set_uniform(uint64_t address, uint64_t bytes);
bool values_are_uniform(uint64_t address, uint64_t bytes);

/* What a kernel would write: so many pieces of memory at most, the last of
 * which then stands for all that come after it, and for what lies between. */
#define VALUES_PIECES 160

struct values_log {
    bool is_needed; /* it would do more than forget */
    uint32_t count;
    struct {
        uint64_t address, bytes;
    } pieces[VALUES_PIECES];
};

/* What this thread writes from now on is noted in LOG, and not done, and all
 * memory counts as known: what a kernel would do at most. NULL: it is done
 * again. */
void values_divert(struct values_log *log);
bool values_are_diverted(void);

/* While diverted: there is more to do than can be seen from what is written; or
 * BYTES at ADDRESS are written. */
void values_divert_whole(void);
void values_divert_write(uint64_t address, uint64_t bytes);

/* True where ADDRESS lies in a device's window. */
CORE_API bool memsim_values_is_device(uint64_t address);

#endif
