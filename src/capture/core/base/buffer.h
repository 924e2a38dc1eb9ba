/* SPDX-License-Identifier: Apache-2.0
 * Bytes that grow, in pages of their own rather than in the user's heap. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_BUFFER_H
#define MEMSIM_CAPTURE_CORE_BASE_BUFFER_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* Zero is an empty one. What was appended is followed by a NUL. */
struct buffer {
    char *bytes;
    size_t used, room;
};

/* False where there is no memory; the buffer stays as it was. */
CORE_API bool memsim_buffer_append(struct buffer *buffer, const void *bytes,
                                   size_t count);
CORE_API bool memsim_buffer_print(struct buffer *buffer, const char *format,
                                  ...) __attribute__((format(printf, 2, 3)));
CORE_API void memsim_buffer_free(struct buffer *buffer);

#endif
