/* SPDX-License-Identifier: Apache-2.0
 * Parts of a C++ name in plain text: "at::native::reduce_kernel<512, 1,
 * Op<float> >(Op<float>)" is the base name reduce_kernel, its template
 * arguments and its parameters. Parts are borrowed from the text. */
#ifndef MEMSIM_RUNTIME_WORK_TEXT_H
#define MEMSIM_RUNTIME_WORK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/cost/work.h"

struct text {
    const char *at;
    size_t length;
};

#define TEXT_PARTS_MAX 16

struct text_parts { /* the first TEXT_PARTS_MAX of a list */
    struct text part[TEXT_PARTS_MAX];
    uint32_t count;
};

struct text_name {
    struct text base;
    struct text_parts arguments;  /* of the template */
    struct text_parts parameters; /* of the function */
};

struct text text_of(const char *string);
bool text_is(struct text text, const char *string);
bool text_ends(struct text text, const char *string);

/* Where STRING begins in TEXT; NULL where it does not occur. */
const char *text_find(struct text text, const char *string);

/* Splits NAME. What it has not got is empty. */
void text_split(struct text name, struct text_name *parts);

/* The parameters of the lambda that NAME ends in: "...::{lambda(float)#1}".
 * False where it ends in none. */
bool text_lambda(struct text name, struct text_parts *parameters);

/* Bytes of an element of the type TEXT names, 0 where they are not known; the
 * type of its arithmetic in *TYPE. */
uint32_t text_type(struct text text, enum work_type *type);

/* The number TEXT is: "4", "32u", "-1", "(NormType)1". */
bool text_number(struct text text, int32_t *number);

#endif
