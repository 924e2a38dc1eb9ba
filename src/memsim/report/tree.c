/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text_columns.h"

#define BAR_CELLS   16
#define NAME_COLUMN 43 /* after the size, the share and the bar */
#define SIZE_LENGTH 16

struct tree {
    const struct attribution *a;
    const struct tree_style *style;
    FILE *out;
    uint64_t total_bytes;
    size_t *order; /* of modules: by parent, the largest first */
};

/* One line: what it holds and what it is called. */
struct row {
    uint64_t bytes;
    const char *name;
    unsigned level;
};

static double share(const struct tree *t, uint64_t bytes)
{
    return t->total_bytes ? (double)bytes / (double)t->total_bytes : 0;
}

static void write_row(const struct tree *t, const struct row *row)
{
    char size[SIZE_LENGTH], bar[BAR_CELLS + 1];
    double part = share(t, row->bytes);
    size_t filled = (size_t)(part * BAR_CELLS + 0.5);
    int indent = 2 * (int)row->level;

    if (indent > 20)
        indent = 20;
    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', filled < BAR_CELLS ? filled : BAR_CELLS);
    bar[BAR_CELLS] = '\0';
    fprintf(t->out, "  %12s %5.1f%%  [%s]  %*s",
            units_format_bytes(row->bytes, size, sizeof size), 100 * part, bar,
            indent, "");
    text_write_end(t->out, row->name, TEXT_COLUMNS - NAME_COLUMN - indent);
    fputc('\n', t->out);
}

static int order_compare(const void *x, const void *y, void *context)
{
    const struct attribution *attribution = context;
    const struct attribution_module *a =
        &attribution->modules[*(const size_t *)x];
    const struct attribution_module *b =
        &attribution->modules[*(const size_t *)y];

    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (a->bytes_at_peak != b->bytes_at_peak)
        return a->bytes_at_peak < b->bytes_at_peak ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* The first place in the order of PARENT's children. */
static size_t children_find(const struct tree *t, size_t parent)
{
    size_t low = 0, high = t->a->module_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->a->modules[t->order[middle]].parent < parent)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *tree_short_name(const char *name, const char *above)
{
    size_t length = strlen(above);

    if (length && !strncmp(name, above, length) && name[length] == '.')
        return name + length + 1;
    return name;
}

static const char *short_name(const struct tree *t, size_t module)
{
    const struct attribution_module *m = &t->a->modules[module];

    return tree_short_name(
        m->name, m->parent == SIZE_MAX ? "" : t->a->modules[m->parent].name);
}

static void write_rest(const struct tree *t, uint64_t bytes, size_t count,
                       unsigned level)
{
    char text[40];

    snprintf(text, sizeof text, "(%zu more)", count);
    write_row(t, &(struct row){bytes, text, level});
}

/* The children of PARENT, its largest first; what it holds itself is one of
 * them, SELF_BYTES in name of SELF. */
static void write_children(const struct tree *t, size_t parent, unsigned level,
                           uint64_t self_bytes, const char *self)
{
    unsigned top = t->style->top ? t->style->top : TREE_TOP;
    unsigned depth = t->style->depth ? t->style->depth : TREE_DEPTH;
    uint64_t rest_bytes = 0;
    size_t rest = 0, shown = 0;

    if (level >= depth)
        return;
    for (size_t i = children_find(t, parent);
         i < t->a->module_count && t->a->modules[t->order[i]].parent == parent;
         i++) {
        const struct attribution_module *m = &t->a->modules[t->order[i]];
        if (self_bytes >= m->bytes_at_peak && self_bytes) {
            write_row(t, &(struct row){self_bytes, self, level});
            self_bytes = 0;
        }
        if (!m->bytes_at_peak)
            break;
        if (shown++ >= top) {
            rest++;
            rest_bytes += m->bytes_at_peak;
            continue;
        }
        write_row(t, &(struct row){m->bytes_at_peak, short_name(t, t->order[i]),
                                   level});
        write_children(t, t->order[i], level + 1, m->self_bytes, "(itself)");
    }
    if (self_bytes && (shown || level == 0))
        write_row(t, &(struct row){self_bytes, self, level});
    if (rest)
        write_rest(t, rest_bytes, rest, level);
}

struct share_row {
    enum trace_category category;
    uint64_t bytes;
};

static int share_compare(const void *x, const void *y)
{
    const struct share_row *a = x, *b = y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return (int)a->category - (int)b->category;
}

static void write_categories(const struct tree *t)
{
    struct share_row rows[TRACE_CATEGORY_COUNT];

    for (size_t i = 0; i < TRACE_CATEGORY_COUNT; i++)
        rows[i] =
            (struct share_row){(enum trace_category)i, t->a->at_peak.bytes[i]};
    qsort(rows, TRACE_CATEGORY_COUNT, sizeof *rows, share_compare);
    for (size_t i = 0; i < TRACE_CATEGORY_COUNT && rows[i].bytes; i++)
        write_row(t, &(struct row){rows[i].bytes,
                                   attribution_category_name(rows[i].category),
                                   0});
}

static void write_heading(const struct tree *t, const char *by)
{
    fprintf(t->out, "  %sat the peak, by %s%s\n", t->style->dim, by,
            t->style->plain);
}

void tree_write(const struct attribution *attribution,
                const struct tree_style *style, FILE *out)
{
    struct tree t = {.a = attribution, .style = style, .out = out};
    uint64_t owned_bytes = 0;

    for (size_t i = 0; i < TRACE_CATEGORY_COUNT; i++)
        t.total_bytes += attribution->at_peak.bytes[i];
    if (!t.total_bytes)
        return;
    t.order = xcalloc(attribution->module_count + 1, sizeof *t.order);
    for (size_t i = 0; i < attribution->module_count; i++) {
        t.order[i] = i;
        owned_bytes += attribution->modules[i].self_bytes;
    }
    qsort_r(t.order, attribution->module_count, sizeof *t.order, order_compare,
            (void *)attribution);
    write_heading(&t, "category");
    write_categories(&t);
    write_heading(&t, "module");
    write_children(&t, SIZE_MAX, 0, t.total_bytes - owned_bytes, "(no module)");
    free(t.order);
}
