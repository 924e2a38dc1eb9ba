/* SPDX-License-Identifier: Apache-2.0
 * Mangled C++ names as text (Itanium C++ ABI, section 5.1), as c++filt writes
 * them but without the function's return type. For the names of kernels: no
 * operators but () and [], no expressions in template arguments. Pure, no
 * heap; safe on any input. */
#ifndef MEMSIM_COMMON_BASE_DEMANGLE_H
#define MEMSIM_COMMON_BASE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes NAME's text into OUT, SIZE bytes with the terminator. A name that is
 * not mangled is copied. False where NAME could be read in part only, or does
 * not fit: OUT then holds the text of the first part. */
bool demangle(const char *name, char *out, size_t size);

#endif
