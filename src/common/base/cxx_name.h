/* SPDX-License-Identifier: Apache-2.0
 * Parts of a C++ name in plain text: "at::native::reduce_kernel<512, 1,
 * Op<float> >(Op<float>)" is the base name reduce_kernel, its template
 * arguments and its parameters. Parts are borrowed from the text. */
#ifndef MEMSIM_COMMON_BASE_CXX_NAME_H
#define MEMSIM_COMMON_BASE_CXX_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cxx_text {
    const char *at;
    size_t length;
};

#define CXX_PARTS_MAX 32

struct cxx_parts { /* the first CXX_PARTS_MAX of a list */
    struct cxx_text part[CXX_PARTS_MAX];
    uint32_t count;
};

struct cxx_name {
    struct cxx_text base;
    struct cxx_parts arguments;  /* of the template */
    struct cxx_parts parameters; /* of the function */
};

struct cxx_text cxx_text_of(const char *string);
bool cxx_is(struct cxx_text text, const char *string);
bool cxx_ends(struct cxx_text text, const char *string);

/* Where STRING begins in TEXT; NULL where it does not occur. */
const char *cxx_find(struct cxx_text text, const char *string);

/* Splits NAME. What it has not got is empty. */
void cxx_split(struct cxx_text name, struct cxx_name *parts);

/* The parameters of the lambda that NAME ends in: "...::{lambda(float)#1}".
 * False where it ends in none. */
bool cxx_lambda(struct cxx_text name, struct cxx_parts *parameters);

/* TEXT without "const" and "&" around it. */
struct cxx_text cxx_unqualified(struct cxx_text text);

bool cxx_begins(struct cxx_text text, const char *string);

/* The number TEXT is: "4", "32u", "-1", "(NormType)1". */
bool cxx_number(struct cxx_text text, int32_t *number);

#endif
