/* SPDX-License-Identifier: Apache-2.0
 * The text of a record, in a buffer of fixed size: what does not fit is cut. */
#ifndef MEMSIM_CAPTURE_CUDNN_TEXT_H
#define MEMSIM_CAPTURE_CUDNN_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define TEXT_BYTES 1024

struct text {
    size_t used;
    char bytes[TEXT_BYTES];
};

void text_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "KEY=1,2,3 " */
void text_add_numbers(struct text *text, const char *key,
                      const int64_t *numbers, int count);

#endif
