/* SPDX-License-Identifier: Apache-2.0
 * What the catalogue of kernels (src/kernels) says, for tools/kernels.
 *
 *     columns --rows     all rows: number, base name, what else must occur
 *     columns <NAMES     of each name: base name, number of its row, then 1 or 0
 *                        for a family, work, arguments, a host computation and
 *                        words; names of C++ variables are left out */
#include <stdio.h>
#include <string.h>

#include "common/base/demangle.h"
#include "kernels/kernel_row.h"
#include "kernels/kernel_words.h"

static const struct kernel_row *const lists[] = {
    kernel_rows_loops, kernel_rows_norm, kernel_rows_index,
    kernel_rows_sort,  kernel_rows_host, kernel_rows_library,
};

/* Calls NAME's row its number; 0: none. Without WANTED, prints all. */
static unsigned rows_walk(const struct kernel_row *wanted)
{
    unsigned number = 0;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct kernel_row *r = lists[i]; r->base || r->contains;
             r++) {
            number++;
            if (r == wanted)
                return number;
            if (!wanted)
                printf("%u\t%s\t%s\n", number, r->base ? r->base : "",
                       r->contains ? r->contains : "");
        }
    return 0;
}

static void name_print(const char *name)
{
    static char text[1 << 16];
    struct cxx_name parts;
    struct work_kernel kernel;

    demangle(name, text, sizeof text);
    if (!strncmp(name, "_Z", 2) && !strchr(text, '('))
        return;
    cxx_split(cxx_text_of(text), &parts);
    work_kernel_read(name, &kernel);
    printf("%.*s\t%u\t%d\t%d\t%d\t%d\t%d\n", (int)parts.base.length,
           parts.base.at, kernel.row ? rows_walk(kernel.row) : 0,
           kernel_family(&kernel) != WORK_OTHER, kernel_is_described(&kernel),
           kernel.arguments != KERNEL_ARGUMENTS_NONE,
           kernel_host(&kernel) != KERNEL_HOST_NONE,
           kernel_words_find(name) != NULL);
}

int main(int argc, char **argv)
{
    static char line[1 << 16];

    if (argc > 1 && !strcmp(argv[1], "--rows")) {
        rows_walk(NULL);
        return 0;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        name_print(line);
    }
    return 0;
}
