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

struct stub {
    const char *library, *symbol;
    enum stub_policy policy;
    int64_t code;   /* what the call returns */
    uint64_t calls; /* counted by memsim_stub_called, atomically */
};

#define STUB_TEXT "not implemented by memsim"
#define STUB_EXPORTED __attribute__((visibility("default")))

/* Notes a call of STUB, which lives as long as its library, and returns what
 * the caller is to see. */
STUB_EXPORTED int64_t memsim_stub_called(struct stub *stub);

/* One function. Its arguments don't matter: the caller clears them away, in
 * the x86-64 and AArch64 calling conventions alike. */
#define STUB(LIBRARY, SYMBOL, POLICY, CODE)                                    \
    STUB_EXPORTED __attribute__((weak)) int64_t SYMBOL(void);                  \
    int64_t SYMBOL(void)                                                       \
    {                                                                          \
        static struct stub stub = {#LIBRARY, #SYMBOL, STUB_##POLICY, CODE, 0}; \
        return memsim_stub_called(&stub);                                      \
    }

/* One variable of SIZE_BYTES, all zero. */
#define STUB_DATA(LIBRARY, SYMBOL, SIZE_BYTES)                                 \
    STUB_EXPORTED __attribute__((weak, aligned(16))) char SYMBOL[SIZE_BYTES]

#endif
