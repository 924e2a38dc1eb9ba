/* SPDX-License-Identifier: Apache-2.0
 * A function of the library that has the driver's name: it passes the call on,
 * to its tap or to the real driver, which is found at the first call. */
#ifndef MEMSIM_CAPTURE_REAL_PASS_H
#define MEMSIM_CAPTURE_REAL_PASS_H

#include <stdint.h>

/* real.h's, of libmemsim-real.so */
void *memsim_real_driver(const char *name);

/* All registers that have arguments, of x86-64 and of AArch64, and more of the
 * stack than any call takes: what is passed on is where the real function looks
 * for it, structs by value too (an IPC handle is 8 words of the stack). */
#define PASS_ARGUMENTS(word, number)                                           \
    word(a), word(b), word(c), word(d), word(e), word(f), word(g), word(h),    \
        number(s), number(t), number(u), number(v), number(w), number(x),      \
        number(y), number(z), word(i), word(j), word(k), word(l), word(m),     \
        word(n), word(o), word(p)
#define PASS_WORD(name)   int64_t name
#define PASS_NUMBER(name) double name
#define PASS_NAME(name)   name

typedef int64_t pass_function(PASS_ARGUMENTS(PASS_WORD, PASS_NUMBER));

#define PASS(symbol)                                                           \
    __attribute__((visibility("default"))) int64_t symbol(                     \
        PASS_ARGUMENTS(PASS_WORD, PASS_NUMBER));                               \
    int64_t symbol(PASS_ARGUMENTS(PASS_WORD, PASS_NUMBER))                     \
    {                                                                          \
        static pass_function *real;                                            \
        if (!real)                                                             \
            real = (pass_function *)memsim_real_driver(#symbol);               \
        return real(PASS_ARGUMENTS(PASS_NAME, PASS_NAME));                     \
    }

#endif
