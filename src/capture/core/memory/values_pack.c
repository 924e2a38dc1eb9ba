/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/values_pack.h"

#include <string.h>

#include "capture/core/memory/values.h"

bool memsim_values_take(uint64_t address, uint64_t bytes, void *data,
                        unsigned char *marks)
{
    const struct values_window *w = values_window(address);
    uint64_t at = w ? address - w->base : 0;

    memset(data, 0, bytes);
    memset(marks, 0, bytes);
    if (!w || !bytes || bytes > w->bytes - at || !values_some(w, at, bytes))
        return false;
    memcpy(data, values_at(w, at, bytes), bytes);
    for (uint64_t i = 0; i < bytes; i++)
        marks[i] = values_known_at(w, at + i);
    return true;
}

/* The bytes from START on, before END, that have the same mark. */
static uint64_t run_end(const unsigned char *marks, uint64_t start,
                        uint64_t end)
{
    uint64_t i = start + 1;

    while (i < end && marks[i] == marks[start])
        i++;
    return i;
}

void memsim_values_give(uint64_t address, uint64_t bytes, const void *data,
                        const unsigned char *marks)
{
    const char *from = data;

    for (uint64_t i = 0, end; i < bytes; i = end) {
        end = run_end(marks, i, bytes);
        char *to = values_write_as(address + i, end - i, marks[i]);

        if (to)
            memcpy(to, from + i, end - i);
    }
}
