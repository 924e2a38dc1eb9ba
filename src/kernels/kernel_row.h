/* SPDX-License-Identifier: Apache-2.0
 * A row of the catalogue: for the files of this folder. */
#ifndef MEMSIM_KERNELS_KERNEL_ROW_H
#define MEMSIM_KERNELS_KERNEL_ROW_H

#include "kernels/kernel.h"
#include "kernels/work_internal.h"

/* A kernel that is known: by its base name, and by what occurs in the whole
 * name, demangled; each NULL where it does not matter. A '*' in either stands
 * for any text. doc/HOWTO-add-kernel.md. */
struct kernel_row {
    const char *base;
    const char *contains;
    enum work_family family;
    enum work_sort sort;
    enum work_rate rate;
    enum kernel_arguments arguments;
    enum kernel_host host;
    const char *words; /* NULL: its operation's (kernel_words.c) */
    /* What the name says beyond types and numbers; or NULL. */
    void (*read)(const struct cxx_name *name, struct work_kernel *kernel);
    /* Sets shapes and bytes; false where the launch does not tell them. NULL:
     * FORM does, and one that moves nothing says nothing of the work. */
    bool (*describe)(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work);
    struct work_form form;
};

/* The first row that fits; NULL: none does. */
const struct kernel_row *kernel_row_find(struct cxx_text name,
                                         struct cxx_text base);

/* KERNEL's row where it says what work a launch is; or NULL. */
const struct kernel_row *kernel_work_row(const struct work_kernel *kernel);

/* kernel_arguments.c: sets KERNEL's arguments and count from its row and its
 * name, whose text is WHOLE. */
void kernel_arguments_read(struct cxx_text whole, const struct cxx_name *name,
                           struct work_kernel *kernel);

/* The rows, each list with an empty one at its end: the first that fits counts,
 * in the order of these lists. */
extern const struct kernel_row kernel_rows_loops[], kernel_rows_norm[],
    kernel_rows_index[], kernel_rows_sort[], kernel_rows_host[],
    kernel_rows_library[];

#endif
