/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/compare_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/svg_page.h"
#include "common/base/text_clean.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/compare_figures.h"
#include "memsim/report/text/ink.h"
#include "memsim/report/text/markdown.h"
#include "memsim/report/text/time_report.h"

#define SIZE_LENGTH 16
#define BAR_CELLS   12
#define BAR_WIDTH   (2 + BAR_CELLS + 2) /* with its gap */
#define TEXT_WIDTH  80
#define CELL_LENGTH 200

/* --- cells ---------------------------------------------------------------- */

enum {
    VERDICT,
    USED,
    RESERVED,
    ALLOCATED,
    HEADROOM,
    STEP,
    TOKENS,
    MFU,
    GPU_HOURS,
    COST,
    EFFICIENCY,
    SMALLEST,
    COLUMNS
};

static const char *const headings[COLUMNS] = {
    [VERDICT] = "verdict",       [USED] = "used",
    [RESERVED] = "reserved",     [ALLOCATED] = "allocated",
    [HEADROOM] = "headroom",     [STEP] = "step",
    [TOKENS] = "tokens/s",       [MFU] = "MFU",
    [GPU_HOURS] = "GPU hours",   [COST] = "cost",
    [EFFICIENCY] = "efficiency", [SMALLEST] = "smallest GPU",
};

static void bytes_cell(char *out, const struct compare_figures *f,
                       uint64_t bytes)
{
    char size[SIZE_LENGTH];

    snprintf(out, CELL_LENGTH, "%s%s", f->whole ? "" : ">= ",
             units_format_bytes(bytes, size, sizeof size));
}

static void verdict_cell(char out[CELL_LENGTH], const struct compare_row *row)
{
    const struct result *r = row->result;

    if (r && r->verdict == VERDICT_FITS && r->refused)
        snprintf(out, CELL_LENGTH, "fits, %" PRIu64 " refused", r->refused);
    else
        snprintf(out, CELL_LENGTH, "%s",
                 r ? result_verdict_name(r->verdict) : row->why);
}

static void speed_cell(char *out, int column, const struct compare_figures *f)
{
    if (column == TOKENS && f->tokens > 0)
        time_format_rate(f->tokens, out, CELL_LENGTH);
    else if (column == MFU && f->mfu > 0)
        snprintf(out, CELL_LENGTH, "%.0f%%", 100 * f->mfu);
    else if (column == GPU_HOURS && f->gpu_hours > 0)
        snprintf(out, CELL_LENGTH, "%.3g", f->gpu_hours);
    else if (column == COST && f->cost > 0)
        snprintf(out, CELL_LENGTH, f->cost < 1000 ? "%.3g" : "%.0f", f->cost);
}

static void cell_write(char out[CELL_LENGTH], int column,
                       const struct compare_row *row,
                       const struct compare_figures *f,
                       const struct compare_catalogue *c)
{
    const char *gpu;

    out[0] = '\0';
    if (column == VERDICT)
        verdict_cell(out, row);
    if (!f->known)
        return;
    if (column == USED)
        bytes_cell(out, f, f->used);
    else if (column == RESERVED)
        bytes_cell(out, f, f->reserved);
    else if (column == ALLOCATED)
        bytes_cell(out, f, f->allocated);
    else if (column == HEADROOM && f->whole)
        units_format_bytes(f->headroom, out, SIZE_LENGTH);
    else if (column == STEP && f->step_ns)
        snprintf(out, CELL_LENGTH, "%.1f ms", (double)f->step_ns / 1e6);
    else if (column >= TOKENS && column <= COST)
        speed_cell(out, column, f);
    else if (column == EFFICIENCY && row->efficiency > 0)
        snprintf(out, CELL_LENGTH, "%.0f%%", 100 * row->efficiency);
    else if (column == SMALLEST && (gpu = compare_smallest_gpu(c, f)))
        snprintf(out, CELL_LENGTH, "%s", gpu);
}

/* --- the text ------------------------------------------------------------- */

struct table {
    const struct compare_report *report;
    char (*cells)[CELL_LENGTH]; /* by row, its names and then the columns */
    struct compare_figures *figures;
    size_t *widths;
    size_t columns;
    bool without[COLUMNS], without_bar; /* in the text, to be narrow */
    bool empty[COLUMNS];
};

static char *cell_of(const struct table *t, size_t row, size_t column)
{
    return t->cells[row * t->columns + column];
}

static size_t width_of(const char *text)
{
    size_t width = 0;

    for (size_t n; *text; text += n, width++)
        if (!(n = text_character(text)))
            n = 1;
    return width;
}

static void row_fill(struct table *t, size_t i,
                     const struct compare_catalogue *c)
{
    const struct compare_report *r = t->report;
    const struct compare_row *row = &r->rows[i];

    t->figures[i] = compare_figures_of(row->result, &r->terms);
    for (size_t k = 0; k < r->title_count; k++)
        text_quote(cell_of(t, i, k), CELL_LENGTH, row->cells[k]);
    for (int k = 0; k < COLUMNS; k++)
        cell_write(cell_of(t, i, r->title_count + (size_t)k), k, row,
                   &t->figures[i], c);
}

static const char *title_of(const struct table *t, size_t column)
{
    return column < t->report->title_count
               ? t->report->titles[column]
               : headings[column - t->report->title_count];
}

static void table_make(struct table *t, const struct compare_report *r)
{
    struct compare_catalogue c = compare_catalogue_load();

    *t = (struct table){.report = r, .columns = r->title_count + COLUMNS};
    t->cells = xcalloc(r->row_count * t->columns + 1, sizeof *t->cells);
    t->figures = xcalloc(r->row_count + 1, sizeof *t->figures);
    t->widths = xcalloc(t->columns, sizeof *t->widths);
    for (size_t i = 0; i < r->row_count; i++)
        row_fill(t, i, &c);
    for (size_t k = 0; k < t->columns; k++) {
        t->widths[k] = width_of(title_of(t, k));
        for (size_t i = 0; i < r->row_count; i++)
            if (width_of(cell_of(t, i, k)) > t->widths[k])
                t->widths[k] = width_of(cell_of(t, i, k));
    }
    free(c.list);
}

static void table_fini(struct table *t)
{
    free(t->cells);
    free(t->figures);
    free(t->widths);
}

static bool is_number(const struct table *t, size_t column)
{
    size_t at = column - t->report->title_count;

    return column >= t->report->title_count && at != VERDICT && at != SMALLEST;
}

static void write_cell(const struct table *t, size_t column, const char *text,
                       FILE *out)
{
    int gap = (int)(t->widths[column] - width_of(text));
    bool last = column + 1 == t->columns;

    if (is_number(t, column))
        fprintf(out, "  %*s%s", gap, "", text);
    else
        fprintf(out, "  %s%*s", text, last ? 0 : gap, "");
}

static void write_bar(const struct compare_figures *f, bool color, FILE *out)
{
    double part = f->capacity ? (double)f->used / (double)f->capacity : 0;
    int filled = (int)(part * BAR_CELLS + 0.5);

    if (!f->known) {
        fprintf(out, "  %*s", BAR_CELLS + 2, "");
        return;
    }
    filled = f->whole && filled < BAR_CELLS ? filled : BAR_CELLS;
    fprintf(out, "  [%s%.*s%s%.*s]",
            ink_code(f->whole ? INK_GOOD : INK_BAD, color), filled,
            "############", ink_code(INK_PLAIN, color), BAR_CELLS - filled,
            "............");
}

static size_t text_width(const struct table *t)
{
    size_t names = t->report->title_count;
    size_t width = t->without_bar ? 0 : BAR_WIDTH;

    for (size_t k = 0; k < t->columns; k++)
        if (k < names || !t->without[k - names])
            width += 2 + t->widths[k];
    return width;
}

/* Whether a column of times and costs says anything. */
static bool has_value(const struct table *t, int column)
{
    for (size_t i = 0; i < t->report->row_count; i++)
        if (*cell_of(t, i, t->report->title_count + (size_t)column))
            return true;
    return false;
}

/* Leaves out columns until the text has TEXT_WIDTH: one without any value, then
 * those that others say nearly as well. */
static void table_narrow(struct table *t)
{
    static const int least[] = {ALLOCATED, HEADROOM, RESERVED, MFU,
                                GPU_HOURS};

    for (int k = STEP; k <= EFFICIENCY; k++)
        t->without[k] = t->empty[k] = !has_value(t, k);
    for (size_t i = 0; i < sizeof least / sizeof *least; i++)
        if (text_width(t) > TEXT_WIDTH)
            t->without[least[i]] = true;
    t->without_bar = text_width(t) > TEXT_WIDTH;
}

/* One line: the headings for ROW -1. */
static void text_row(const struct table *t, long row, bool color, FILE *out)
{
    size_t names = t->report->title_count;

    for (size_t k = 0; k < t->columns; k++) {
        if (k == names + VERDICT && !t->without_bar && row < 0)
            fprintf(out, "  %-*s", BAR_CELLS + 2, "of the memory");
        else if (k == names + VERDICT && !t->without_bar)
            write_bar(&t->figures[row], color, out);
        if (k < names || !t->without[k - names])
            write_cell(
                t, k, row < 0 ? title_of(t, k) : cell_of(t, (size_t)row, k),
                out);
    }
}

static void text_left_out(const struct table *t, FILE *out)
{
    bool any = false;

    for (int k = 0; k < COLUMNS; k++) {
        if (t->empty[k] || !t->without[k])
            continue;
        fprintf(out, "%s%s", any ? ", " : "  not shown: ", headings[k]);
        any = true;
    }
    if (any)
        fputs("; --csv and --markdown have all\n", out);
}

/* What tokens/s of several ranks is under. */
static void text_condition(const struct table *t, FILE *out)
{
    for (size_t i = 0; i < t->report->row_count; i++)
        if (t->figures[i].tokens > 0 && t->figures[i].gpus > 1) {
            fputs("  tokens/s of several ranks: if each has its own batch\n",
                  out);
            return;
        }
}

void compare_report_text(const struct compare_report *report,
                         const struct report_style *style, FILE *out)
{
    struct table t;

    table_make(&t, report);
    table_narrow(&t);
    fputs(ink_code(INK_DIM, style->color), out);
    text_row(&t, -1, style->color, out);
    fprintf(out, "%s\n", ink_code(INK_PLAIN, style->color));
    for (size_t i = 0; i < report->row_count; i++) {
        text_row(&t, (long)i, style->color, out);
        fputc('\n', out);
    }
    text_left_out(&t, out);
    text_condition(&t, out);
    table_fini(&t);
}

/* --- Markdown, a page, CSV ------------------------------------------------ */

void compare_report_markdown(const void *report, FILE *out)
{
    char text[2 * CELL_LENGTH];
    struct table t;

    table_make(&t, report);
    for (size_t k = 0; k < t.columns; k++)
        fprintf(out, "| %s ",
                markdown_escape(text, sizeof text, title_of(&t, k)));
    fputs("|\n", out);
    for (size_t k = 0; k < t.columns; k++)
        fputs(is_number(&t, k) ? "|--:" : "|---", out);
    fputs("|\n", out);
    for (size_t i = 0; i < t.report->row_count; i++) {
        for (size_t k = 0; k < t.columns; k++)
            fprintf(out, "| %s ",
                    markdown_escape(text, sizeof text, cell_of(&t, i, k)));
        fputs("|\n", out);
    }
    table_fini(&t);
}

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
    "'none'; style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>memsim: runs side by side</title>\n<style>\n"
    "body { background: #fff; color: #14181d; font: 15px/1.5 sans-serif; "
    "margin: 16px; }\n"
    "svg { display: block; height: auto; max-width: 100%; }\n"
    "table { border-collapse: collapse; margin-top: 16px; }\n"
    "th, td { border-bottom: 1px solid #d5dbe2; padding: 3px 8px; "
    "text-align: left; white-space: nowrap; }\n"
    ".number { font-variant-numeric: tabular-nums; text-align: right; }\n"
    "</style>\n</head>\n<body>\n<main>\n<h1>Runs side by side</h1>\n";

/* A row of the page's table; -1: the headings. */
static void html_row(const struct table *t, long row, FILE *out)
{
    const char *kind = row < 0 ? "th" : "td";

    fputs("<tr>", out);
    for (size_t k = 0; k < t->columns; k++) {
        fprintf(out, "<%s%s%s>", kind, row < 0 ? " scope=\"col\"" : "",
                is_number(t, k) ? " class=\"number\"" : "");
        svg_escape(out,
                   row < 0 ? title_of(t, k) : cell_of(t, (size_t)row, k));
        fprintf(out, "</%s>", kind);
    }
    fputs("</tr>\n", out);
}

void compare_report_html(const void *report, FILE *out)
{
    struct table t;

    table_make(&t, report);
    fputs(page_head, out);
    compare_report_chart(report, out);
    fputs("<table>\n<thead>\n", out);
    html_row(&t, -1, out);
    fputs("</thead>\n<tbody>\n", out);
    for (size_t i = 0; i < t.report->row_count; i++)
        html_row(&t, (long)i, out);
    fputs("</tbody>\n</table>\n</main>\n</body>\n</html>\n", out);
    table_fini(&t);
}

/* Does a spreadsheet take TEXT for a formula? Numbers below 0 are none. */
static bool is_formula(const char *text)
{
    char *end;

    if (!*text || !strchr("=+-@\t\r", *text))
        return false;
    strtod(text, &end);
    return end == text || *end;
}

static void csv_text(FILE *out, const char *text)
{
    bool formula = is_formula(text);

    if (!formula && !text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    fputs(formula ? "\"'" : "\"", out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static void csv_number(double value, FILE *out)
{
    fputc(',', out);
    if (value > 0)
        fprintf(out, "%.10g", value);
}

static void csv_row(const struct compare_report *r,
                    const struct compare_row *row,
                    const struct compare_catalogue *c, FILE *out)
{
    struct compare_figures f = compare_figures_of(row->result, &r->terms);
    size_t names = r->title_count;
    const char *gpu = compare_smallest_gpu(c, &f);

    for (size_t k = 0; k < names; k++) {
        csv_text(out, row->cells[k]);
        fputc(',', out);
    }
    csv_text(out, row->result ? result_verdict_name(row->result->verdict)
                              : row->why);
    if (f.known)
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, f.used,
                f.reserved, f.allocated, f.capacity);
    else
        fputs(",,,,", out);
    fputc(',', out);
    if (f.step_ns)
        fprintf(out, "%" PRIu64, f.step_ns);
    fprintf(out, ",%s,", gpu ? gpu : "");
    if (row->result)
        fprintf(out, "%" PRIu64, row->result->refused);
    csv_number((double)f.gpus, out);
    csv_number(f.tokens, out);
    csv_number(f.mfu, out);
    csv_number(f.gpu_hours, out);
    csv_number(f.cost, out);
    csv_number(row->efficiency, out);
    fputc('\n', out);
}

void compare_report_csv(const void *report, FILE *out)
{
    const struct compare_report *r = report;
    struct compare_catalogue c = compare_catalogue_load();

    for (size_t k = 0; k < r->title_count; k++) {
        csv_text(out, r->titles[k]);
        fputc(',', out);
    }
    fputs("verdict,used_bytes,reserved_bytes,allocated_bytes,capacity_bytes,"
          "step_ns,smallest_gpu,failed_allocations,gpus,"
          "tokens_per_second,mfu,gpu_hours,cost,efficiency\n",
          out);
    for (size_t i = 0; i < r->row_count; i++)
        csv_row(r, &r->rows[i], &c, out);
    free(c.list);
}
