/* SPDX-License-Identifier: Apache-2.0
 * Marks of an imported profile: a gradient of a parameter is ready. */
#ifndef MEMSIM_COMMON_TRACE_GRADIENT_H
#define MEMSIM_COMMON_TRACE_GRADIENT_H

/* The beginning of the text of such a MARK; its elements and the bytes of each
 * follow: "memsim gradient 768 4". */
#define TRACE_GRADIENT "memsim gradient "

#endif
