/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/scaling.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text_clean.h"

#define BAR_CELLS 40

unsigned long scaling_nodes(const struct compare_row *row, size_t axis)
{
    return strtoul(row->cells[axis], NULL, 10);
}

bool compare_rows_alike(const struct compare_report *r, size_t axis,
                        const struct compare_row *a,
                        const struct compare_row *b)
{
    for (size_t k = 0; k < r->title_count; k++)
        if (k != axis && strcmp(a->cells[k], b->cells[k]) != 0)
            return false;
    return true;
}

/* The row that ROW is compared with: the fewest nodes with a step. */
static const struct compare_row *base_of(const struct compare_report *r,
                                         size_t axis,
                                         const struct compare_row *row)
{
    const struct compare_row *base = NULL;

    for (size_t i = 0; i < r->row_count; i++) {
        const struct compare_row *each = &r->rows[i];
        struct compare_figures f = compare_figures_of(each->result, &r->terms);
        if (f.step_ns && compare_rows_alike(r, axis, each, row) &&
            (!base || scaling_nodes(each, axis) < scaling_nodes(base, axis)))
            base = each;
    }
    return base;
}

static double scaling_efficiency(const struct compare_figures *f,
                                 const struct compare_figures *base)
{
    if (!f->step_ns || !base->step_ns)
        return 0;
    if (f->tokens > 0 && base->tokens > 0 && f->gpus && base->gpus)
        return f->tokens / (double)f->gpus /
               (base->tokens / (double)base->gpus);
    return (double)base->step_ns / (double)f->step_ns;
}

void scaling_find(struct compare_report *report, size_t axis)
{
    for (size_t i = 0; i < report->row_count; i++) {
        struct compare_row *row = &report->rows[i];
        const struct compare_row *base = base_of(report, axis, row);
        if (!base)
            continue;
        struct compare_figures f =
            compare_figures_of(row->result, &report->terms);
        struct compare_figures b =
            compare_figures_of(base->result, &report->terms);
        row->efficiency = scaling_efficiency(&f, &b);
    }
}

void compare_row_write_rest(const struct compare_report *r, size_t axis,
                            const struct compare_row *row, FILE *out)
{
    char text[64];

    for (size_t k = 0; k < r->title_count; k++)
        if (k != axis) {
            text_quote(text, sizeof text, row->cells[k]);
            fprintf(out, "  %s=%s", r->titles[k], text);
        }
}

void scaling_write(const struct compare_report *report, size_t axis, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < report->row_count; i++) {
        const struct compare_row *row = &report->rows[i];
        double most = row->efficiency < 1 ? row->efficiency : 1;
        int cells = (int)(most * BAR_CELLS + 0.5);
        if (!(row->efficiency > 0))
            continue;
        if (!any)
            fputs("\n  efficiency by nodes\n", out);
        any = true;
        fprintf(out, "  %5lu  %4.0f%%  [%.*s%.*s]", scaling_nodes(row, axis),
                100 * row->efficiency, cells,
                "########################################", BAR_CELLS - cells,
                "........................................");
        compare_row_write_rest(report, axis, row, out);
        fputc('\n', out);
    }
}
