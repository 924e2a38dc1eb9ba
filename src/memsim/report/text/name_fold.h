/* SPDX-License-Identifier: Apache-2.0
 * Modules of the same name but for numbers, as one. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_NAME_FOLD_H
#define MEMSIM_MEMSIM_REPORT_TEXT_NAME_FOLD_H

#include <stddef.h>

/* NAME with * for each part that is a number, "layers.*.mlp"; the caller frees
 * it. */
char *name_fold(const char *name);

/* "layers.*.mlp, 12", where COUNT modules are FOLDED; the only one's own NAME.
 * The caller frees it. */
char *name_fold_text(const char *folded, const char *name, size_t count);

#endif
