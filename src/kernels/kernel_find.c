/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernel_row.h"

#include <string.h>

static const struct kernel_row *const lists[] = {
    kernel_rows_loops, kernel_rows_norm, kernel_rows_index,
    kernel_rows_sort,  kernel_rows_host, kernel_rows_library,
};

static bool is_row(const struct kernel_row *row)
{
    return row->base || row->contains;
}

/* Whether TEXT is PATTERN, in which a '*' stands for any text. */
static bool text_fits(struct cxx_text text, const char *pattern)
{
    const char *star = strchr(pattern, '*');
    size_t length = star ? (size_t)(star - pattern) : strlen(pattern);

    if (text.length < length || memcmp(text.at, pattern, length))
        return false;
    text.at += length;
    text.length -= length;
    if (!star)
        return !text.length;
    while (star[1] && text.length && !text_fits(text, star + 1)) {
        text.at++;
        text.length--;
    }
    return !star[1] || text.length;
}

/* Whether the parts of PATTERN, between its '*', occur in TEXT in turn. */
static bool text_contains(struct cxx_text text, const char *pattern)
{
    while (*pattern) {
        size_t length = strcspn(pattern, "*");
        const char *at = memmem(text.at, text.length, pattern, length);
        if (!at)
            return false;
        text.length -= (size_t)(at - text.at) + length;
        text.at = at + length;
        pattern += length + (pattern[length] == '*');
    }
    return true;
}

const struct kernel_row *kernel_row_find(struct cxx_text name,
                                         struct cxx_text base)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct kernel_row *row = lists[i]; is_row(row); row++)
            if ((!row->base || text_fits(base, row->base)) &&
                (!row->contains || text_contains(name, row->contains)))
                return row;
    return NULL;
}

const struct kernel_row *kernel_work_row(const struct work_kernel *kernel)
{
    const struct kernel_row *row = kernel->row;
    bool describes =
        row && (row->describe || row->form.read || row->form.written);

    return describes ? row : NULL;
}

bool kernel_is_described(const struct work_kernel *kernel)
{
    return kernel_work_row(kernel);
}

enum kernel_host kernel_host(const struct work_kernel *kernel)
{
    return kernel->row ? kernel->row->host : KERNEL_HOST_NONE;
}

enum work_family kernel_family(const struct work_kernel *kernel)
{
    return kernel->row ? kernel->row->family : WORK_OTHER;
}
