/* SPDX-License-Identifier: Apache-2.0
 * Predicted step times for people, in 80 columns. */
#include <stddef.h>
#include <string.h>

#include "common/base/units.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/report/text/time_report.h"

#define ROWS         5
#define ROWS_SHORT   4
#define NAME_COLUMN  23 /* after the time and the share */
#define LEAST        0.001 /* of the step: worth a row */
#define HOST_BOUND    0.1 /* of the step: worth a line */

struct page {
    FILE *out;
    const char *bold, *plain;
    bool verbose;
    int columns;
};

static double share_of(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* A part of a step; INSIDE: it is a part of the one before. */
struct part {
    const char *name;
    size_t offset; /* of its ns in struct timing_step */
    bool inside;
};

#define PART(name, field, inside)                                             \
    {name, offsetof(struct timing_step, field), inside}

static const struct part parts[] = {
    PART("compute", compute_ns, false),
    PART("beside communication", overlapped_comm_ns, true),
    PART("communication, exposed", exposed_comm_ns, false),
    PART("waits for other ranks", peers_ns, true),
    PART("pipeline bubble", bubble_ns, false),
    PART("copies, exposed", exposed_copy_ns, false),
    PART("waits for the host", host_bound_ns, false),
    PART("gaps and waits of streams", other_ns, false),
};

#define PARTS (sizeof parts / sizeof *parts)

static uint64_t part_ns(const struct timing_step *s, const struct part *part)
{
    uint64_t ns;

    memcpy(&ns, (const char *)s + part->offset, sizeof ns);
    return ns;
}

static void write_part_rows(const struct page *p, const struct timing_step *s)
{
    char text[32];

    for (size_t i = 0; i < PARTS; i++) {
        uint64_t ns = part_ns(s, &parts[i]);
        if (!ns)
            continue;
        time_format_ns((double)ns, text, sizeof text);
        fprintf(p->out, "  %12s %5.1f%%  %s%s\n", text,
                share_of((double)ns, (double)s->duration_ns),
                parts[i].inside ? "  of it " : "", parts[i].name);
    }
}

/* "compute 92.9% (12.1% beside communication), waits for the host 5.5%" */
static void write_part_line(const struct page *p, const struct timing_step *s)
{
    char line[512] = "";

    for (size_t i = 0; i < PARTS; i++) {
        double part =
            share_of((double)part_ns(s, &parts[i]), (double)s->duration_ns);
        size_t used = strlen(line);
        if (part < 100 * LEAST)
            continue;
        if (parts[i].inside)
            snprintf(line + used, sizeof line - used, " (%.1f%% %s)", part,
                     parts[i].name);
        else
            snprintf(line + used, sizeof line - used, "%s%s %.1f%%",
                     used ? ", " : "", parts[i].name, part);
    }
    if (*line)
        text_write_wrapped(p->out, "   ", line);
}

static void write_links(const struct page *p, const struct timing *t,
                        const struct timing_step *s)
{
    char inside[16], between[16];

    if (!s->link_bytes[SIM_LINK_NODE] && !s->link_bytes[SIM_LINK_NODES])
        return;
    fprintf(p->out, "    sent by each rank: %s in groups inside a node, %s in "
            "groups over\n    several nodes\n",
            units_format_bytes(s->link_bytes[SIM_LINK_NODE], inside,
                               sizeof inside),
            units_format_bytes(s->link_bytes[SIM_LINK_NODES], between,
                               sizeof between));
    if (t->network_users > 1)
        fprintf(p->out,
                "    each node's network is priced as shared by up to %.3g "
                "collectives\n",
                t->network_users);
}

static void write_title(const struct page *p, const char *title)
{
    fprintf(p->out, "\n  %s%s%s\n", p->bold, title, p->plain);
}

static void write_modules(const struct page *p, const struct timing *t,
                          double whole)
{
    size_t count;
    struct time_fold *rows =
        time_fold_make(t->modules, t->module_count, &count);
    size_t most = p->verbose ? ROWS : ROWS_SHORT;
    char text[32], each[40];

    if (count && p->verbose)
        write_title(p, "device time of a step, by module");
    for (size_t i = 0; i < count && i < most; i++) {
        time_format_ns(rows[i].ns, text, sizeof text);
        int width = 0;
        each[0] = '\0';
        if (rows[i].count > 1)
            width = snprintf(each, sizeof each, "  (%zu)", rows[i].count);
        fprintf(p->out, "  %12s %5.1f%%  ", text, share_of(rows[i].ns, whole));
        text_write_end(p->out, rows[i].name, p->columns - NAME_COLUMN - width);
        fprintf(p->out, "%s\n", each);
    }
    time_fold_free(rows, count);
}

static void write_rows(const struct page *p, const char *title,
                       const struct timing_row *rows, size_t count,
                       double whole)
{
    char text[32];

    if (!count)
        return;
    write_title(p, title);
    for (size_t i = 0; i < count && i < ROWS; i++) {
        if (!p->verbose && rows[i].ns < LEAST * whole)
            return;
        time_format_ns(rows[i].ns, text, sizeof text);
        fprintf(p->out, "  %12s %5.1f%%  ", text, share_of(rows[i].ns, whole));
        text_write_end(p->out, rows[i].name, p->columns - NAME_COLUMN);
        fputc('\n', p->out);
    }
}

/* Of the last step, which may be another than the typical one. */
static double path_ns(const struct timing *t)
{
    double sum = 0;

    for (size_t i = 0; i < t->path_count; i++)
        sum += t->path[i].ns;
    return sum;
}

/* What the prices of the device time rest on, in words. */
static const char *const basis_words[COST_BASES] = {
    [COST_MEASURED] = "measured",
    [COST_FITTED] = "fits of measurements on this GPU",
    [COST_BORROWED] = "fits of another GPU's measurements",
    [COST_ESTIMATED] = "estimates",
    [COST_ROOFLINE] = "the data sheet's limits",
    [COST_FALLBACK] = "a few microseconds each, for lack of a model",
};

static void write_basis(const struct page *p, const struct timing *t)
{
    char text[400] = "";

    for (int i = 0; i < COST_BASES; i++) {
        size_t used = strlen(text);
        if (t->basis[i] >= 0.005)
            snprintf(text + used, sizeof text - used, "%s %.0f%% %s",
                     used ? "," : "prices of the device time:",
                     100 * t->basis[i], basis_words[i]);
    }
    if (*text)
        text_write_wrapped(p->out, " ", text);
}

/* What the step would take where the CPU is no limit. */
static void write_host(const struct page *p, const struct timing *t,
                       const struct timing_step *s)
{
    char keeps_up[32], text[160];
    double host = share_of((double)s->host_bound_ns, (double)s->duration_ns);

    if (timing_is_unsure(t) && !t->imported)
        return; /* a note says so */
    if (!time_waits_for_cpu(t)) {
        if (t->imported && host >= 100 * HOST_BOUND)
            fprintf(p->out, "  the GPU waits for the CPU in %.0f%% of the "
                            "step\n",
                    host);
        return;
    }
    time_format_ns((double)t->keeps_up_ns, keeps_up, sizeof keeps_up);
    snprintf(text, sizeof text,
             "the GPU waits for the CPU in %.0f%% of the step; with a CPU that "
             "keeps up it takes %s (--host-speed 0)",
             host, keeps_up);
    text_write_wrapped(p->out, " ", text);
}

static bool has_times(const struct result *result)
{
    for (size_t i = 0; i < result->rank_count; i++)
        if (result->ranks[i].timing)
            return true;
    return false;
}

void time_text_write_step(const struct result *result, FILE *out)
{
    const struct timing *t = time_slowest(result);
    char time[32], low[32], high[32];

    if (!t && result->verdict == VERDICT_OOM && has_times(result))
        fprintf(out, "  %-16s  %s\n", "step",
                "not known: memory ran out in the first one");
    if (!t)
        return;
    const struct timing_step *s = &t->steps[t->typical];
    time_format_ns((double)s->duration_ns, time, sizeof time);
    time_format_ns((double)s->low_ns, low, sizeof low);
    time_format_ns((double)s->high_ns, high, sizeof high);
    fprintf(out, "  %-16s %11s  (%s to %s)", "step", time, low, high);
    if (t->mfu > 0)
        fprintf(out, "  MFU %.0f%%", 100 * t->mfu);
    fputc('\n', out);
    time_throughput_write(result, out);
}

/* What a reader who asks for all gets besides. */
static void write_more(const struct page *p, const struct result *result,
                       const struct timing *t)
{
    write_rows(p, "device time of a step, by operator", t->operators,
               t->operator_count, (double)timing_step_ns(t));
    write_rows(p, "the critical path of the last step", t->path, t->path_count,
               path_ns(t));
    fputc('\n', p->out);
    time_throughput_write_basis(result, p->out);
    time_energy_write(result, p->out);
    write_basis(p, t);
}

void time_text_write(const struct result *result,
                     const struct time_style *style, FILE *out)
{
    const struct page page = {out, style->bold, style->plain, style->verbose,
                              style->columns ? style->columns : TEXT_COLUMNS};
    const struct timing *t = time_slowest(result);

    if (!t)
        return;
    const struct timing_step *s = &t->steps[t->typical];
    double whole = (double)s->duration_ns;
    write_title(&page, style->verbose ? "what the GPU does in a step"
                                      : "a step, and device time by module");
    if (style->verbose)
        write_part_rows(&page, s);
    else
        write_part_line(&page, s);
    write_links(&page, t, s);
    write_host(&page, t, s);
    time_ranks_write(result, style->bold, style->plain, out);
    write_modules(&page, t, whole);
    if (style->verbose)
        write_more(&page, result, t);
    if (result->dependencies)
        fprintf(out, "\n  %sdependencies in step %zu; <-- is what decided the "
                     "start%s\n%s",
                style->bold, t->typical, style->plain, result->dependencies);
}
