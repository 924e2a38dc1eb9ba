/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/growth_report.h"
#include "memsim/report/text/gpu_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/compare_figures.h"
#include "memsim/report/text/ink.h"
#include "memsim/report/text/text_columns.h"

#define NAME_WIDTH  24
#define CELL_LENGTH 32

/* --- rows ----------------------------------------------------------------- */

static enum cost_basis basis_of_most(const struct timing *t)
{
    int most = 0;

    for (int i = 1; i < COST_BASES; i++)
        if (t->basis[i] > t->basis[most])
            most = i;
    return (enum cost_basis)most;
}

static void add_times(struct gpu_row *row, const struct result *result)
{
    const struct timing *t = time_slowest(result);

    if (!t)
        return;
    const struct timing_step *s = &t->steps[t->typical];
    row->step_ns = s->duration_ns;
    row->low_ns = s->low_ns;
    row->high_ns = s->high_ns;
    row->rate = time_rate_of(result);
    row->basis = basis_of_most(t);
    row->waits_for_cpu = time_waits_for_cpu(t);
}

void gpu_table_add(struct gpu_table *t, const struct result *result,
                   const struct gpu *gpu, double price, bool kernels_differ)
{
    const struct compare_terms none = {0};
    const struct compare_figures f = compare_figures_of(result, &none);
    uint32_t gpus = 0;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        gpus++;
    t->gpus = gpus > t->gpus ? gpus : t->gpus;
    xgrow(&t->rows, t->count, &t->capacity, sizeof *t->rows);
    struct gpu_row *row = &t->rows[t->count++];
    *row = (struct gpu_row){.gpu = *gpu,
                            .verdict = result->verdict,
                            .exit_status = result->exit_status,
                            .used_bytes = f.used,
                            .headroom_bytes = f.headroom,
                            .kernels_differ = kernels_differ,
                            .price = price};
    const struct result_device *grows = growth_first(result);
    t->no_steps |= result->no_steps;
    row->lasts_steps = grows ? grows->growth.least : 0;
    add_times(row, result);
}

static bool row_fits(const struct gpu_row *row)
{
    return row->verdict == VERDICT_FITS;
}

double gpu_row_step_price(const struct gpu_table *t, const struct gpu_row *row)
{
    return row->price * t->gpus * (double)row->step_ns / 3.6e12;
}

/* What is not known comes last. */
static int by_number(double a, double b)
{
    if (a > 0 && b > 0)
        return a < b ? -1 : a > b;
    return (b > 0) - (a > 0);
}

static int by_use(const void *x, const void *y)
{
    const struct gpu_row *a = x, *b = y;
    int order = row_fits(b) - row_fits(a);

    if (!order)
        order = by_number(a->price * (double)a->step_ns,
                          b->price * (double)b->step_ns);
    if (!order)
        order = by_number((double)a->step_ns, (double)b->step_ns);
    return order ? order : strcmp(a->gpu.name, b->gpu.name);
}

void gpu_table_sort(struct gpu_table *t)
{
    if (t->count)
        qsort(t->rows, t->count, sizeof *t->rows, by_use);
}

void gpu_table_fini(struct gpu_table *t)
{
    free(t->rows);
}

/* --- for people ----------------------------------------------------------- */

/* Rests on measurements of another kind of GPU, or on none. */
static bool is_rough(const struct gpu_row *row)
{
    return row->step_ns && row->basis >= COST_BORROWED;
}

static bool kernels_differ(const struct gpu_row *row)
{
    return row->kernels_differ;
}

static bool waits_for_cpu(const struct gpu_row *row)
{
    return row->waits_for_cpu;
}

static const struct mark {
    char letter;
    bool (*is_of)(const struct gpu_row *row);
    const char *text;
} marks[] = {
    {'~', is_rough,
     "most of its prices are fits of another GPU's measurements, or limits of "
     "its data sheet"},
    {'k', kernels_differ,
     "PyTorch chooses other kernels on it, whose memory and time are not "
     "known; run the script with --gpu"},
    {'c', waits_for_cpu,
     "the step waits for this machine's CPU; with --host-speed 0 it does not"},
};

#define MARKS (sizeof marks / sizeof *marks)

/* "40.1 ms-48.6 ms" */
static void format_band(const struct gpu_row *row, char text[CELL_LENGTH])
{
    char low[CELL_LENGTH], high[CELL_LENGTH];

    text[0] = '\0';
    if (!row->step_ns)
        return;
    time_format_ns((double)row->low_ns, low, sizeof low);
    time_format_ns((double)row->high_ns, high, sizeof high);
    snprintf(text, CELL_LENGTH, "%.10s-%.12s", low, high);
}

static void format_rate(const struct gpu_row *row, char text[CELL_LENGTH])
{
    text[0] = '\0';
    if (row->rate.per_second > 0)
        time_format_rate(row->rate.per_second, text, CELL_LENGTH);
}

static void format_step(const struct gpu_row *row, char text[CELL_LENGTH])
{
    snprintf(text, CELL_LENGTH, "not known");
    if (row->step_ns)
        time_format_ns((double)row->step_ns, text, CELL_LENGTH);
}

/* The band leaves its place to the prices, where there are any. */
static void write_row(const struct gpu_table *t, const struct gpu_row *row,
                      FILE *out)
{
    char headroom[CELL_LENGTH], step[CELL_LENGTH], rate[CELL_LENGTH];
    char band[CELL_LENGTH], letters[MARKS + 1] = "";
    size_t count = 0;

    format_step(row, step);
    format_rate(row, rate);
    format_band(row, band);
    fprintf(out, "  %-*s %10s %9s", NAME_WIDTH, row->gpu.name,
            units_format_bytes(row->headroom_bytes, headroom, sizeof headroom),
            step);
    if (!t->has_prices)
        fprintf(out, " %20s %8s", band, rate);
    else if (row->price > 0)
        fprintf(out, " %8s %8.2f %11.4g", rate, row->price,
                1000 * gpu_row_step_price(t, row));
    else
        fprintf(out, " %8s %8s %11s", rate, "", "");
    for (size_t i = 0; i < MARKS; i++)
        if (marks[i].is_of(row))
            letters[count++] = marks[i].letter;
    fprintf(out, "%s%s\n", *letters ? " " : "", letters);
}

static const char *rate_word(const struct gpu_table *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].rate.per_second > 0)
            return t->rows[i].rate.tokens ? "tokens/s" : "items/s";
    return "";
}

static void write_heading(const struct gpu_table *t, bool color, FILE *out)
{
    fprintf(out, "\n%s  %-*s %10s %9s", ink_code(INK_BOLD, color), NAME_WIDTH,
            "GPU", "headroom", "step");
    if (t->has_prices)
        fprintf(out, " %8s %8s %11s", rate_word(t), "an hour",
                "1000 steps");
    else
        fprintf(out, " %20s %8s", "its band", rate_word(t));
    fprintf(out, "%s\n", ink_code(INK_PLAIN, color));
}

/* A line with the GPUs of that verdict, if there are any. */
static void write_others(const struct gpu_table *t, enum verdict verdict,
                         const char *words, FILE *out)
{
    char *line = NULL;

    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].verdict == verdict) {
            char *more = xasprintf("%s%s %s", line ? line : words,
                                   line ? "," : "", t->rows[i].gpu.name);
            free(line);
            line = more;
        }
    if (line)
        text_write_wrapped(out, " ", line);
    free(line);
}

/* "memory grows, and lasts 790 steps on l4, 23 steps on t4" */
static void write_growing(const struct gpu_table *t, FILE *out)
{
    char *line = NULL;

    for (size_t i = 0; i < t->count; i++) {
        const struct gpu_row *row = &t->rows[i];
        if (!row->lasts_steps)
            continue;
        char *more = xasprintf("%s%s %" PRIu64 " steps on %s",
                               line ? line : "memory grows, and lasts",
                               line ? "," : "", row->lasts_steps,
                               row->gpu.name);
        free(line);
        line = more;
    }
    if (line)
        text_write_wrapped(out, " ", line);
    free(line);
}

static void write_marks(const struct gpu_table *t, FILE *out)
{
    for (size_t i = 0; i < MARKS; i++)
        for (size_t k = 0; k < t->count; k++)
            if (row_fits(&t->rows[k]) && marks[i].is_of(&t->rows[k])) {
                char first[] = {' ', ' ', marks[i].letter, '\0'};
                text_write_wrapped(out, first, marks[i].text);
                break;
            }
}

static void write_left_out(const struct gpu_table *t, FILE *out)
{
    if (t->without_code)
        fprintf(out, "  left out: %zu GPUs that the job's libraries have no "
                     "code for\n",
                t->without_code);
    if (t->over_budget || t->without_price)
        fprintf(out, "  left out: %zu GPUs above the budget, %zu of no known "
                     "price\n",
                t->over_budget, t->without_price);
}

static size_t count_fits(const struct gpu_table *t)
{
    size_t count = 0;

    for (size_t i = 0; i < t->count; i++)
        count += row_fits(&t->rows[i]);
    return count;
}

void gpu_table_text(const struct gpu_table *t, const struct report_style *style,
                    FILE *out)
{
    size_t fitting = count_fits(t);

    fprintf(out, "%smemsim: fits on %zu of %zu GPUs%s\n",
            ink_code(fitting ? INK_GOOD : INK_BAD, style->color), fitting,
            t->count, ink_code(INK_PLAIN, style->color));
    if (fitting)
        write_heading(t, style->color, out);
    for (size_t i = 0; i < fitting; i++)
        write_row(t, &t->rows[i], out);
    fputc('\n', out);
    write_growing(t, out);
    write_others(t, VERDICT_OOM, "out of memory on", out);
    write_others(t, VERDICT_INPUT, "the largest input does not fit on", out);
    write_others(t, VERDICT_OVER_LIMIT, "above the limit on", out);
    write_others(t, VERDICT_UNKNOWN,
                 t->no_steps ? "no step was recorded; what was run fits on"
                             : "not known, as the recording is not of the "
                               "whole job:",
                 out);
    write_marks(t, out);
    write_left_out(t, out);
}
