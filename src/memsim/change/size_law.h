/* SPDX-License-Identifier: Apache-2.0
 * How a number of an operation follows from a size of the job, such as the
 * model's width, by its values at two sizes:
 *
 *   512 at 64, 1024 at 128   the size to the power of 1
 *   4096      16384          to the power of 2
 *   514       514            it does not follow
 *   1538      3074           on a line: 24 * size + 2
 *
 * The powers are tried first: sizes of tensors are products. But the number of
 * chunks of 65536 elements that the largest parameter has, as PyTorch's norm of
 * gradients allocates for each tensor, is rounded up. */
#ifndef MEMSIM_MEMSIM_CHANGE_SIZE_LAW_H
#define MEMSIM_MEMSIM_CHANGE_SIZE_LAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memsim/change/size_sum.h"

/* The size in the two recordings, and the wanted one. All differ, none is 0. */
struct size_points {
    uint64_t first, second, wanted;
    uint64_t tensors;   /* parameters; 0: not known */
    uint64_t chunks[3]; /* of the largest, in the first, second and changed */
    struct size_sums *sums; /* of parameters; NULL: not known */
};

enum size_law {
    SIZE_SAME,
    SIZE_POWER,
    SIZE_SUM, /* the elements of several parameters, each of which does */
    SIZE_LINE,
    SIZE_UNEVEN, /* a multiple of 2, 4 or 8 in both, but not where it is wanted:
                    libraries choose other kernels */
    SIZE_NONE,   /* the wanted size gives no whole number, or one below 0 */
};

/* Is the wanted size between the two? */
bool size_is_between(const struct size_points *p);

/* Is the second recording's size nearer to the wanted one, as a ratio? */
bool size_second_is_nearer(const struct size_points *p);

/* The number that is FIRST and SECOND in the recordings. */
enum size_law size_law_number(const struct size_points *p, uint64_t first,
                              uint64_t second, uint64_t *wanted);

/* The same for a dimension, which can be SIZE_UNEVEN. */
enum size_law size_law_dimension(const struct size_points *p, uint64_t first,
                                 uint64_t second, uint64_t *wanted);

/* Blocks of a grid, each of which takes an unknown power of 2 of elements for
 * each thread. ELEMENTS: in the first, the second and the wanted. SIZE_NONE: no
 * such number explains both. */
enum size_law size_law_blocks(const uint64_t elements[3], uint64_t first,
                              uint64_t second, uint32_t threads,
                              uint64_t *wanted);

/* An estimate of what follows no law, such as a time: on the power law through
 * both, of an exponent from 0 to 3. */
uint64_t size_law_estimate(const struct size_points *p, uint64_t first,
                           uint64_t second);

/* Notes that a number which is FIRST and SECOND follows LAW: *WEAKEST is the
 * weakest law so far, BAD the first number of SIZE_UNEVEN or SIZE_NONE. */
void size_law_weaken(enum size_law *weakest, uint64_t bad[2],
                     enum size_law law, uint64_t first, uint64_t second);

/* A text with dimensions. */
struct size_text {
    const char *first, *second;
    size_t first_bytes, second_bytes;
    char *wanted; /* of ROOM bytes */
    size_t room;
    enum size_law law; /* the weakest */
    uint64_t bad[2];   /* the first dimension of SIZE_UNEVEN or SIZE_NONE */
};

/* Writes the text at the wanted size. Returns its length; ROOM or more: it does
 * not fit; 0 with the law SIZE_NONE: the two differ in more than numbers. */
size_t size_law_text(const struct size_points *p, struct size_text *t);

#endif
