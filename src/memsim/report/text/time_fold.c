/* SPDX-License-Identifier: Apache-2.0
 * Times of modules for people: layers as one row. */
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/report/text/name_fold.h"
#include "memsim/report/text/time_report.h"

#define WHOLE 0.995 /* of a module that its part has: the part is shown */

static struct time_fold *row_find(struct time_fold *rows, size_t count,
                                  const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

/* OUTER is a module above INNER, and INNER has all of its time. */
static bool has_all(const struct time_fold *inner,
                    const struct time_fold *outer)
{
    size_t length = strlen(outer->name);

    return inner != outer && inner->ns >= WHOLE * outer->ns &&
           !strncmp(inner->name, outer->name, length) &&
           inner->name[length] == '.';
}

static int by_time(const void *x, const void *y)
{
    const struct time_fold *a = x, *b = y;

    if (a->ns != b->ns)
        return a->ns < b->ns ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* Leaves out the modules whose time is all of a part's. */
static size_t whole_drop(struct time_fold *rows, size_t count)
{
    size_t kept = 0;
    bool *drop = xcalloc(count + 1, sizeof *drop);

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count && !drop[i]; k++)
            drop[i] = has_all(&rows[k], &rows[i]);
    for (size_t i = 0; i < count; i++)
        if (drop[i])
            free(rows[i].name);
        else
            rows[kept++] = rows[i];
    free(drop);
    return kept;
}

struct time_fold *time_fold_make(const struct timing_row *rows, size_t count,
                                 size_t *folded)
{
    struct time_fold *all = xcalloc(count + 1, sizeof *all);

    *folded = 0;
    for (size_t i = 0; i < count; i++) {
        char *name = name_fold(rows[i].name);
        struct time_fold *row = row_find(all, *folded, name);
        if (row)
            free(name);
        else
            *(row = &all[(*folded)++]) = (struct time_fold){.name = name};
        row->ns += rows[i].ns;
        row->count++;
    }
    *folded = whole_drop(all, *folded);
    qsort(all, *folded, sizeof *all, by_time);
    return all;
}

void time_fold_free(struct time_fold *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(rows[i].name);
    free(rows);
}
