/* SPDX-License-Identifier: Apache-2.0
 * As much of a CUDA C++ source as tells which kernels it defines, and the
 * binary that stands for it. */
#ifndef MEMSIM_CAPTURE_NVRTC_SOURCE_H
#define MEMSIM_CAPTURE_NVRTC_SOURCE_H

#include <stdbool.h>

#include "capture/core/base/buffer.h"

/* The first __global__ function of SOURCE: its name, and the text between its
 * brackets, both in SOURCE. */
struct source_kernel {
    const char *name, *parameters;
    size_t length, parameters_length;
};

bool source_first(const char *source, struct source_kernel *kernel);

/* Appends the linker's name of each __global__ function of SOURCE, each ended
 * by a NUL, to NAMES. Templates are left out: only a name expression makes
 * kernels of them. */
bool source_kernels(const char *source, struct buffer *names);

/* Appends the linker's name of EXPRESSION ("&ns::kernel<float, 4>") to NAME.
 * Templates' arguments are not decoded, only made part of the name: nobody but
 * the loader, which is ours, takes it apart. */
bool source_lower(const char *expression, struct buffer *name);

/* PTX text, or an ELF file as ptxas writes it, with NAMES for kernels. */
bool source_ptx(const struct buffer *names, unsigned capability,
                struct buffer *ptx);
bool source_cubin(const struct buffer *names, unsigned capability,
                  struct buffer *cubin);

#endif
