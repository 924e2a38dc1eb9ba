/* SPDX-License-Identifier: Apache-2.0
 * Predicted step times for people, in 80 columns. */
#include <string.h>

#include "common/base/units.h"
#include "memsim/report/text_columns.h"
#include "memsim/report/time_report.h"

#define ROWS          5
#define NAME_COLUMNS  52
#define HOST_BOUND    0.1 /* of the step: worth a line */

struct page {
    FILE *out;
    const char *dim, *plain;
};

static double share(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void write_part(const struct page *p, const char *name, uint64_t ns,
                       uint64_t whole)
{
    char text[32];

    if (!ns)
        return;
    time_format_ns((double)ns, text, sizeof text);
    fprintf(p->out, "    %-28s %10s %5.1f%%\n", name, text,
            share((double)ns, (double)whole));
}

static void write_parts(const struct page *p, const struct timing_step *s)
{
    write_part(p, "compute", s->compute_ns, s->duration_ns);
    write_part(p, "  of it beside communication", s->overlapped_comm_ns,
               s->duration_ns);
    write_part(p, "communication, exposed", s->exposed_comm_ns,
               s->duration_ns);
    write_part(p, "  of it waits for other ranks", s->peers_ns,
               s->duration_ns);
    write_part(p, "pipeline bubble", s->bubble_ns, s->duration_ns);
    write_part(p, "copies, exposed", s->exposed_copy_ns, s->duration_ns);
    write_part(p, "waits for the host", s->host_bound_ns, s->duration_ns);
    write_part(p, "gaps and waits of streams", s->other_ns, s->duration_ns);
}

static void write_links(const struct page *p, const struct timing *t,
                        const struct timing_step *s)
{
    char inside[16], between[16];

    if (!s->link_bytes[SIM_LINK_NODE] && !s->link_bytes[SIM_LINK_NODES])
        return;
    fprintf(p->out, "    sent by each rank: %s in collectives inside a node, "
            "%s in\n    those over several nodes\n",
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

static void write_rows(const struct page *p, const char *title,
                       const struct timing_row *rows, size_t count,
                       double whole)
{
    char text[32];

    if (!count)
        return;
    fprintf(p->out, "  %s%s%s\n", p->dim, title, p->plain);
    for (size_t i = 0; i < count && i < ROWS; i++) {
        time_format_ns(rows[i].ns, text, sizeof text);
        fprintf(p->out, "  %12s %5.1f%%  ", text, share(rows[i].ns, whole));
        text_write_end(p->out, rows[i].name, NAME_COLUMNS);
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

/* "  basis: 61% fitted, 30% roofline" */
static void write_basis(const struct page *p, const struct timing *t)
{
    const char *before = "  of the device time";

    for (int i = 0; i < COST_BASES; i++) {
        if (t->basis[i] < 0.005)
            continue;
        fprintf(p->out, "%s %.0f%% %s", before, 100 * t->basis[i],
                cost_basis_name((enum cost_basis)i));
        before = ",";
    }
    if (*before == ',')
        fputc('\n', p->out);
}

/* What the step would take where the CPU is no limit. */
static void write_host(const struct page *p, const struct timing *t,
                       const struct timing_step *s)
{
    char keeps_up[32], text[160];
    double host = share((double)s->host_bound_ns, (double)s->duration_ns);

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

void time_text_write(const struct result *result, const char *dim,
                     const char *plain, FILE *out)
{
    const struct page page = {out, dim, plain};
    const struct timing *t = time_slowest(result);
    char time[32], low[32], high[32];

    if (!t && result->verdict == VERDICT_OOM && has_times(result))
        fprintf(out, "  %-16s  %s\n", "step",
                "not known: memory ran out in the first one");
    if (!t)
        return;
    const struct timing_step *s = &t->steps[t->typical];
    double whole = (double)s->duration_ns;
    time_format_ns(whole, time, sizeof time);
    time_format_ns((double)s->low_ns, low, sizeof low);
    time_format_ns((double)s->high_ns, high, sizeof high);
    fprintf(out, "  %-16s %11s  (%s to %s)", "step", time, low, high);
    if (t->mfu > 0)
        fprintf(out, "  MFU %.0f%%", 100 * t->mfu);
    fputc('\n', out);
    time_throughput_write(result, out);
    write_parts(&page, s);
    write_links(&page, t, s);
    time_ranks_write(result, dim, plain, out);
    write_rows(&page, "modules, device time of a step", t->modules,
               t->module_count, whole);
    write_rows(&page, "operators, device time of a step", t->operators,
               t->operator_count, whole);
    write_rows(&page, "the critical path of the last step", t->path,
               t->path_count, path_ns(t));
    write_basis(&page, t);
    write_host(&page, t, s);
    if (result->dependencies)
        fprintf(out, "  %sdependencies in step %zu; <-- is what decided the "
                     "start%s\n%s",
                dim, t->typical, plain, result->dependencies);
}
