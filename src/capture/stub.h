/* SPDX-License-Identifier: Apache-2.0
 * What stands in for a CUDA function that nobody has written by hand: it says
 * once that it was called and returns what its line in api/NAME.api says.
 *
 * A stub is weak: a definition of the same name in src/capture/NAME/ wins when
 * the library is linked. Files of stubs include no CUDA header, because those
 * define names to other names (cuMemAlloc to cuMemAlloc_v2). */
#ifndef MEMSIM_CAPTURE_STUB_H
#define MEMSIM_CAPTURE_STUB_H

#include <stdint.h>

enum stub_policy {
    STUB_fail, /* returns the library's code for "not supported" */
    STUB_warn, /* warns once and succeeds */
    STUB_ok,   /* succeeds without a word: doing nothing is right */
    STUB_work, /* succeeds: work for the device, with no result to show */
    STUB_null, /* returns a NULL pointer */
    STUB_text, /* returns STUB_TEXT, where a NULL would end in strlen */
};

#define STUB_TEXT     "not implemented by memsim"
#define STUB_EXPORTED __attribute__((visibility("default")))

/* Notes a call of a stub and returns CODE. NAMES is "LIBRARY\0SYMBOL" and lives
 * as long as its library; *CALLS counts. */
STUB_EXPORTED int64_t memsim_stub_called(const char *names,
                                         enum stub_policy policy, int64_t code,
                                         uint64_t *calls);

/* One function. Its arguments don't matter: the caller clears them away, in
 * the x86-64 and AArch64 calling conventions alike. No pointer is stored, as
 * each would be relocated in every process that starts. */
#define STUB(LIBRARY, SYMBOL, POLICY, CODE)                                    \
    STUB_EXPORTED __attribute__((weak)) int64_t SYMBOL(void);                  \
    int64_t SYMBOL(void)                                                       \
    {                                                                          \
        static uint64_t calls;                                                 \
        return memsim_stub_called(#LIBRARY "\0" #SYMBOL, STUB_##POLICY, CODE,  \
                                  &calls);                                     \
    }

/* One variable of SIZE_BYTES, all zero. */
#define STUB_DATA(LIBRARY, SYMBOL, SIZE_BYTES)                                 \
    STUB_EXPORTED __attribute__((weak, aligned(16))) char SYMBOL[SIZE_BYTES]

#endif
