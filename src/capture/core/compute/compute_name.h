/* SPDX-License-Identifier: Apache-2.0
 * Reading what matters out of a mangled name (Itanium C++ ABI, 5.1). */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_NAME_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_NAME_H

#include "capture/core/base/number.h"

/* What follows PATTERN in NAME; NULL where it is not there. */
const char *name_after(const char *name, const char *pattern);

/* Reads COUNT types at *TEXT and moves past them; false where one is none of
 * torch's numbers. A substitution (S4_) can only stand for half or bfloat16
 * among those, and stands for the one before it. */
bool name_types(const char **text, enum number_type *types, int count);

/* The same where HALF, of two bytes, came before. */
bool name_types_after(const char **text, enum number_type *types, int count,
                      enum number_type half);

/* The arguments of the first lambda in TEXT that takes any, as in EUlblE_:
 * their number, or -1. */
int name_lambda(const char *text, enum number_type *types, int most);
int name_lambda_after(const char *text, enum number_type *types, int most,
                      enum number_type half);

/* The type that AT_DISPATCH_ALL_TYPES's innermost lambda in NAME stands for:
 * its ordinal, as in NKUlvE2_clEvE. */
enum number_type name_dispatched(const char *name);

/* The bytes of at::native::OpaqueType<n> or of a type, at TEXT; 0: neither. */
uint32_t name_bytes(const char *text);

#endif
