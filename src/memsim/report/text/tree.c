/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/tree.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/result/tree_node.h"

#define BAR_CELLS   16
#define NAME_COLUMN 43 /* after the size, the share and the bar */
#define SIZE_LENGTH 16
#define LEVELS      100
#define OWN_ROWS    3  /* of a module's own operators, the largest */
#define LEAST       0.005 /* of all: a row's share */
#define OWN_SHARE   50 /* an operator is told from 1/50 of the row above */

struct tree {
    const struct attribution *a;
    const struct tree_style *style;
    FILE *out;
    uint64_t total_bytes;
    struct tree_nodes nodes;
};

/* One line: what it holds and what it is called. */
struct row {
    uint64_t bytes;
    const char *name;
    unsigned level;
};

static double share_of(const struct tree *t, uint64_t bytes)
{
    return t->total_bytes ? (double)bytes / (double)t->total_bytes : 0;
}

/* Rows below that are left out, where not all is asked for. */
static bool is_small(const struct tree *t, uint64_t bytes)
{
    return !t->style->verbose && share_of(t, bytes) < LEAST;
}

static void write_row(const struct tree *t, const struct row *row)
{
    char size[SIZE_LENGTH], bar[BAR_CELLS + 1];
    double part = share_of(t, row->bytes);
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
    int columns = t->style->columns ? t->style->columns : TEXT_COLUMNS;
    text_write_end(t->out, row->name, columns - NAME_COLUMN - indent);
    fputc('\n', t->out);
}

/* What a module holds itself, by operator: the largest, and the rest. */
static void write_own(const struct tree *t, const struct tree_node *node,
                      const char *whose, unsigned level)
{
    struct tree_own *own;
    uint64_t rest = node->own_bytes;
    size_t count = tree_own_list(&t->nodes, node, &own), shown = 0;

    for (; shown < count && shown < OWN_ROWS; shown++) {
        if (own[shown].bytes > rest ||
            own[shown].bytes * OWN_SHARE < node->bytes)
            break;
        char *name = xasprintf("(%s%s)", whose, own[shown].name);
        write_row(t, &(struct row){own[shown].bytes, name, level});
        free(name);
        rest -= own[shown].bytes;
    }
    if (rest && !is_small(t, rest)) {
        char *name = xasprintf("(%s%s)", whose, shown ? "other" : "operations");
        write_row(t, &(struct row){rest, name, level});
        free(name);
    }
    tree_own_free(own, count);
}

static void write_rest(const struct tree *t, uint64_t bytes, size_t count,
                       unsigned level)
{
    char text[40];

    snprintf(text, sizeof text, "(%zu more)", count);
    write_row(t, &(struct row){bytes, text, level});
}

/* A list is no level of its own, and what is in it is shown. */
static unsigned depth_below(const struct tree_node *node, unsigned level,
                            unsigned depth)
{
    if (!node->is_list)
        return depth;
    return depth + 1 > level + 2 ? depth + 1 : level + 2;
}

/* Whether a part is shown: a list is, below DEPTH too. */
static bool is_shown(const struct tree *t, const struct tree_node *node,
                     unsigned level, unsigned depth)
{
    return !is_small(t, node->bytes) && (level < depth || node->is_list);
}

/* What is in ABOVE: its parts, the largest first, and among them what it holds
 * itself. */
static void write_children(const struct tree *t, const struct tree_node *above,
                           unsigned level, unsigned depth)
{
    unsigned top = t->style->top ? t->style->top : TREE_TOP;
    bool own_waits = above->own_bytes && above->count && level < depth;
    uint64_t rest_bytes = 0;
    size_t rest = 0;

    if (level > LEVELS)
        return;
    struct tree_node *nodes;
    size_t count = tree_node_children(&t->nodes, above, &nodes);
    for (size_t i = 0; i < count; i++) {
        if (own_waits && above->own_bytes >= nodes[i].bytes) {
            write_own(t, above, "own: ", level);
            own_waits = false;
        }
        if (!is_shown(t, &nodes[i], level, depth))
            continue;
        if (i >= top) {
            rest += nodes[i].parts;
            rest_bytes += nodes[i].bytes;
            continue;
        }
        write_row(t, &(struct row){nodes[i].bytes, nodes[i].name, level});
        write_children(t, &nodes[i], level + 1,
                       depth_below(&nodes[i], level, depth));
    }
    if (own_waits && count)
        write_own(t, above, "own: ", level);
    if (rest && !is_small(t, rest_bytes))
        write_rest(t, rest_bytes, rest, level);
    tree_node_free(nodes, count);
}

/* What no module was at work for. */
static void write_outside(const struct tree *t, uint64_t bytes)
{
    struct tree_node outside = {.bytes = bytes, .own_bytes = bytes};

    if (!bytes || is_small(t, bytes))
        return;
    write_row(t, &(struct row){bytes, "(no module)", 0});
    if (t->style->depth != 1)
        write_own(t, &outside, "", 1);
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

/* In one line where not all is asked for: "activation 63.0%, temporary 18.9%".
 */
static void write_categories(const struct tree *t,
                             const struct share_row *rows)
{
    char *line = xstrdup("");

    for (size_t i = 0; i < TRACE_CATEGORY_COUNT && rows[i].bytes &&
                       !is_small(t, rows[i].bytes);
         i++) {
        const char *name = attribution_category_name(rows[i].category);
        char *longer = xasprintf("%s%s%s %.1f%%", line, *line ? ", " : "", name,
                                 100 * share_of(t, rows[i].bytes));
        if (t->style->verbose)
            write_row(t, &(struct row){rows[i].bytes, name, 0});
        free(line);
        line = longer;
    }
    if (!t->style->verbose)
        text_write_wrapped(t->out, "   ", line);
    free(line);
}

static void sort_categories(const struct tree *t,
                            struct share_row rows[TRACE_CATEGORY_COUNT])
{
    for (size_t i = 0; i < TRACE_CATEGORY_COUNT; i++)
        rows[i] =
            (struct share_row){(enum trace_category)i, t->a->at_peak.bytes[i]};
    qsort(rows, TRACE_CATEGORY_COUNT, sizeof *rows, share_compare);
}

static void write_heading(const struct tree *t, const char *by)
{
    fprintf(t->out, "\n  %sat the peak, by %s%s\n", t->style->bold, by,
            t->style->plain);
}

void tree_write(const struct attribution *attribution,
                const struct tree_style *style, FILE *out)
{
    struct tree t = {.a = attribution, .style = style, .out = out};
    struct share_row categories[TRACE_CATEGORY_COUNT];
    uint64_t owned_bytes = 0;

    for (size_t i = 0; i < TRACE_CATEGORY_COUNT; i++)
        t.total_bytes += attribution->at_peak.bytes[i];
    if (!t.total_bytes)
        return;
    for (size_t i = 0; i < attribution->module_count; i++)
        owned_bytes += attribution->modules[i].self_bytes;
    sort_categories(&t, categories);
    write_heading(&t, style->verbose ? "category" : "category and module");
    write_categories(&t, categories);
    if (style->verbose)
        write_heading(&t, "module");
    tree_nodes_init(&t.nodes, attribution);
    write_children(&t, &(struct tree_node){.bytes = owned_bytes}, 0,
                   style->depth     ? style->depth
                   : style->verbose ? TREE_DEPTH_VERBOSE
                                    : TREE_DEPTH);
    write_outside(&t, t.total_bytes - owned_bytes);
    tree_nodes_fini(&t.nodes);
}
