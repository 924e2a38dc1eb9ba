/* SPDX-License-Identifier: Apache-2.0
 * Reads pickles without running them. Pickle is a language whose programs build
 * objects and call functions; this decoder knows the opcodes that make None,
 * booleans, numbers, strings, lists, tuples and dicts, and refuses the rest.
 *
 * Time is linear in the input and nothing recurses, whatever the input holds.
 * The values take at most PICKLE_MEMORY_BASE bytes and PICKLE_MEMORY_FACTOR
 * times the input; an input that needs more is refused. PyTorch 2.11's
 * snapshots took 7 times their size. */
#ifndef MEMSIM_COMMON_BASE_PICKLE_H
#define MEMSIM_COMMON_BASE_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { PICKLE_MEMORY_FACTOR = 16, PICKLE_MEMORY_BASE = 4 << 20 };

enum pickle_type {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_FLOAT,
    PICKLE_STRING,
    PICKLE_LIST,
    PICKLE_TUPLE,
    PICKLE_DICT,
};

struct pickle_items;

/* Values may be shared, and lists and dicts may contain themselves. */
struct pickle_value {
    enum pickle_type type;
    uint32_t text_bytes;
    union {
        int64_t number; /* of a BOOL, too */
        double real;
        const char *text; /* into the input; not terminated */
        struct pickle_items *items;
    };
};

struct pickle;

/* Decodes the BYTES of DATA, which must outlive the result. ORIGIN stands for
 * the file in "ORIGIN:byte N: ..." messages. The caller pickle_free's the
 * result; NULL on failure. */
struct pickle *pickle_parse(const void *data, size_t bytes, const char *origin,
                            struct err *err);
void pickle_free(struct pickle *pickle);

const struct pickle_value *pickle_root(const struct pickle *pickle);

/* The elements of a list or tuple, or the keys and values of a dict in turn. 0
 * and NULL for other types (VALUE may be NULL) and past the end. */
size_t pickle_count(const struct pickle_value *value);
const struct pickle_value *pickle_item(const struct pickle_value *value,
                                       size_t index);

/* What DICT holds under KEY; NULL where it has no such key, is no dict or is
 * NULL. O(keys): *BUDGET falls by the number of keys looked at, and at 0 no
 * key is found any more, which bounds the walk of a hostile input. */
const struct pickle_value *pickle_find(const struct pickle_value *dict,
                                       const char *key, uint64_t *budget);

#endif
