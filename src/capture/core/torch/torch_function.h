/* SPDX-License-Identifier: Apache-2.0
 * Functions of PyTorch's libraries. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_TORCH_FUNCTION_H
#define MEMSIM_CAPTURE_CORE_TORCH_TORCH_FUNCTION_H

/* The function NAME of LIBRARY itself, which one of ours may stand before;
 * NULL: LIBRARY is not loaded, or has none. */
void *torch_function(const char *library, const char *name);

#endif
