/* SPDX-License-Identifier: Apache-2.0
 * Kernels in words that a user of PyTorch knows. Pure. */
#ifndef MEMSIM_KERNELS_KERNEL_WORDS_H
#define MEMSIM_KERNELS_KERNEL_WORDS_H

#include <stddef.h>

/* Writes to OUT what a kernel does, from its mangled or unmangled name:
 * "log_softmax forward". If the name is not known, writes the kernel's name,
 * shortened. */
void kernel_words(const char *name, char *out, size_t size);

/* What a kernel does, in words; NULL if the name is not known. */
const char *kernel_words_find(const char *name);

#endif
