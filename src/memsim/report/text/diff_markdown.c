/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/diff_report.h"
#include "memsim/report/text/markdown.h"
#include "memsim/report/text/name_fold.h"
#include "memsim/report/text/tree.h"

#define UNITS_LENGTH 16

static void markdown_row(FILE *out, const struct diff_pair *p, const char *name)
{
    char before[UNITS_LENGTH], after[UNITS_LENGTH], change[UNITS_LENGTH];
    double percent =
        p->before ? 100.0 * ((double)p->after / (double)p->before - 1) : 0;

    units_format_bytes(p->before, before, sizeof before);
    units_format_bytes(p->after, after, sizeof after);
    units_format_bytes(diff_distance(p), change, sizeof change);
    fprintf(out, "| %s | %s | %s | ", name, before, after);
    if (p->before == p->after)
        fprintf(out, "| |\n");
    else if (p->before)
        fprintf(out, "%c%s | %+.1f%% |\n", p->after > p->before ? '+' : '-',
                change, percent);
    else
        fprintf(out, "+%s | new |\n", change);
}

static void markdown_table(FILE *out, const char *what)
{
    fprintf(out,
            "\n| %s | before | after | change | |\n"
            "|---|--:|--:|--:|--:|\n",
            what);
}

/* Modules of one name but for numbers, together. */
struct fold {
    char *name;
    const char *first; /* one's own */
    size_t count;
    struct diff_pair self;
};

static int fold_compare(const void *x, const void *y)
{
    const struct fold *a = x, *b = y;
    uint64_t first = diff_distance(&a->self), second = diff_distance(&b->self);

    return first < second ? 1 : first > second ? -1 : strcmp(a->name, b->name);
}

static void fold_add(struct fold *folds, size_t *count,
                     const struct diff_module *m)
{
    char *name = name_fold(m->name);
    size_t i = 0;

    while (i < *count && strcmp(folds[i].name, name))
        i++;
    if (i == *count)
        folds[(*count)++] = (struct fold){.name = name, .first = m->name};
    else
        free(name);
    folds[i].count++;
    folds[i].self.before += m->self.before;
    folds[i].self.after += m->self.after;
}

/* The modules whose own part moved most: no level of the tree has to be read
 * for it. */
static void markdown_modules(FILE *out, const struct diff_device *d,
                             unsigned top)
{
    struct fold *folds = xcalloc(d->module_count + 1, sizeof *folds);
    size_t count = 0;

    for (size_t i = 0; i < d->module_count; i++)
        if (d->modules[i].self.before != d->modules[i].self.after)
            fold_add(folds, &count, &d->modules[i]);
    qsort(folds, count, sizeof *folds, fold_compare);
    if (count || d->outside.before != d->outside.after)
        markdown_table(out, "own memory of modules at the peak, how many");
    for (size_t i = 0; i < count; i++) {
        const struct fold *f = &folds[i];
        char name[256], *text = name_fold_text(f->name, f->first, f->count);
        markdown_escape(name, sizeof name, text);
        if (i < top)
            markdown_row(out, &f->self, name);
        free(text);
        free(f->name);
    }
    if (d->outside.before != d->outside.after)
        markdown_row(out, &d->outside, "(no module)");
    if (count > top)
        fprintf(out, "\nand %zu more kinds of modules\n", count - top);
    free(folds);
}

static void markdown_device(FILE *out, const struct diff_device *d,
                            unsigned top)
{
    markdown_table(out, "of the whole run");
    markdown_row(out, &d->used, "peak used");
    markdown_row(out, &d->reserved, "peak reserved");
    markdown_row(out, &d->allocated, "peak allocated");
    markdown_row(out, &d->headroom, "headroom");
    if (!d->attributed)
        return;
    markdown_table(out, "at the peak, by category");
    for (int c = 0; c < TRACE_CATEGORY_COUNT; c++)
        if (d->categories[c].before || d->categories[c].after)
            markdown_row(out, &d->categories[c],
                         attribution_category_name((enum trace_category)c));
    markdown_modules(out, d, top);
}

void diff_report_markdown(const void *report, FILE *out)
{
    const struct diff_report *r = report;
    const struct diff *diff = r->diff;
    char text[1024];

    markdown_escape(text, sizeof text, r->words);
    fprintf(out, "### memsim: %s\n\n", text);
    markdown_escape(text, sizeof text, r->before);
    fprintf(out, "before: %s, %s  \n",
            result_verdict_name(diff->before->verdict), text);
    markdown_escape(text, sizeof text, r->after);
    fprintf(out, "after: %s, %s\n", result_verdict_name(diff->after->verdict),
            text);
    for (size_t i = 0, last; i < diff->device_count; i = last + 1) {
        const struct diff_device *d = &diff->devices[i];
        for (last = i; last + 1 < diff->device_count; last++)
            if (!diff_devices_alike(d, &diff->devices[last + 1]))
                break;
        if (last > i)
            fprintf(out, "\n#### ranks %u to %u, each\n", d->rank,
                    diff->devices[last].rank);
        else if (diff->device_count > 1)
            fprintf(out, "\n#### rank %u, GPU %u\n", d->rank, d->index);
        markdown_device(out, d, TREE_TOP);
    }
    if (r->time->known)
        fprintf(out, "\nstep: %.2f ms before, %.2f ms after (%+.1f%%)\n",
                r->time->before_ns / 1e6, r->time->after_ns / 1e6,
                time_diff_percent(r->time));
    for (size_t i = 0; i < r->note_count; i++) {
        markdown_escape(text, sizeof text, r->notes[i]);
        fprintf(out, "%s- %s\n", i ? "" : "\n", text);
    }
}
