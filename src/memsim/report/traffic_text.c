/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "common/base/units.h"
#include "memsim/collectives/traffic.h"

#define TIME_LENGTH 16

static char *format_us(double us, char *out)
{
    static const struct unit {
        double us;
        const char *name;
    } units[] = {{1e6, "s"}, {1e3, "ms"}, {1, "us"}};
    size_t i = 0;

    while (i < 2 && us < units[i].us)
        i++;
    snprintf(out, TIME_LENGTH, "%.2f %s", us / units[i].us, units[i].name);
    return out;
}

static bool same_row(const struct traffic_row *a, const struct traffic_row *b)
{
    return a->coll == b->coll && a->ranks == b->ranks && a->nodes == b->nodes &&
           a->gpus_per_node == b->gpus_per_node && a->assumed == b->assumed &&
           a->all.calls == b->all.calls && a->all.bytes == b->all.bytes &&
           a->step.calls == b->step.calls && a->step.bytes == b->step.bytes &&
           a->all.us == b->all.us && a->step.us == b->step.us &&
           a->unpriced == b->unpriced &&
           !memcmp(a->flagged, b->flagged, sizeof a->flagged);
}

static bool same_rank(const struct traffic_rank *a,
                      const struct traffic_rank *b)
{
    if (a->row_count != b->row_count || a->steps != b->steps)
        return false;
    for (size_t i = 0; i < a->row_count; i++)
        if (!same_row(&a->rows[i], &b->rows[i]))
            return false;
    return true;
}

/* UNPRICED of the calls have no time. */
static void write_sum(const char *name, const char *ranks, const char *place,
                      const struct traffic_sum *sum, uint64_t unpriced,
                      FILE *out)
{
    char bytes[16], time[TIME_LENGTH] = "unknown";

    if (sum->us > 0 || !unpriced)
        format_us(sum->us, time);
    fprintf(out, "  %-14s %6s  %9s %8" PRIu64 " %12s %s%*s", name, ranks, place,
            sum->calls, units_format_bytes(sum->bytes, bytes, sizeof bytes),
            sum->us > 0 && unpriced ? ">" : " ", 11, time);
}

static void write_row(const struct traffic_row *row,
                      const struct traffic_sum *sum, FILE *out)
{
    char ranks[16], place[32], error[16] = "?";

    snprintf(ranks, sizeof ranks, "%" PRIu32, row->ranks);
    snprintf(place, sizeof place, "%" PRIu32 " x %" PRIu32, row->nodes,
             row->gpus_per_node);
    if (row->error >= 0)
        snprintf(error, sizeof error, "%.1f%%", 100 * row->error);
    write_sum(fit_coll_name(row->coll), ranks, place, sum, row->unpriced, out);
    fprintf(out, " %7s\n", error);
}

static void write_title(const struct traffic *t, size_t first, size_t last,
                        const char *dim, const char *plain, FILE *out)
{
    const struct traffic_rank *r = &t->ranks[first];

    fprintf(out, "  %scollectives on %s", dim, t->cluster);
    if (first != last)
        fprintf(out, ", ranks %" PRIu32 " to %" PRIu32 ", each", r->rank,
                t->ranks[last].rank);
    else if (t->rank_count > 1)
        fprintf(out, ", rank %" PRIu32, r->rank);
    if (r->typical)
        fprintf(out, ", the median of %" PRIu32 " steps", r->steps);
    else
        fprintf(out, ", the whole run");
    fprintf(out, "%s\n", plain);
    fprintf(out, "  %s%-14s %6s  %9s %8s %12s %12s %7s%s\n", dim, "", "ranks",
            "nodes", "calls", "bytes", "sum", "error", plain);
}

/* Over all rows of the ranks that the table is of, once for each warning. */
static void write_warning(const struct traffic_rank *r, int flag, FILE *out)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < r->row_count; i++)
        calls += flag < COST_NCCL_FLAGS ? r->rows[i].flagged[flag]
                                        : r->rows[i].unpriced;
    if (calls)
        fprintf(out, "  warning: %" PRIu64 " of %" PRIu64 " calls: %s\n", calls,
                r->all.calls,
                flag < COST_NCCL_FLAGS ? cost_nccl_flag_text(1u << flag)
                                       : TRAFFIC_UNPRICED);
}

static void write_rank(const struct traffic_rank *r, FILE *out)
{
    uint64_t assumed = 0, unpriced = 0;

    for (size_t i = 0; i < r->row_count; i++) {
        const struct traffic_row *row = &r->rows[i];
        const struct traffic_sum *sum = r->typical ? &row->step : &row->all;

        if (sum->calls)
            write_row(row, sum, out);
        assumed += row->assumed ? row->all.calls : 0;
        unpriced += row->unpriced;
    }
    if (r->typical) {
        write_sum("in all", "", "", &r->step, unpriced, out);
        fputc('\n', out);
        write_sum("whole run", "", "", &r->all, unpriced, out);
        fputc('\n', out);
    }
    for (int i = 0; i <= COST_NCCL_FLAGS; i++)
        write_warning(r, i, out);
    if (assumed)
        fprintf(out,
                "  warning: %" PRIu64 " of %" PRIu64 " calls: the others of "
                "the group did not run here:\n           taken for "
                "neighbours\n",
                assumed, r->all.calls);
}

void traffic_text_write(const struct traffic *traffic, const char *dim,
                        const char *plain, FILE *out)
{
    const struct traffic *t = traffic;

    for (size_t first = 0, last; first < t->rank_count; first = last + 1) {
        for (last = first; last + 1 < t->rank_count; last++)
            if (!same_rank(&t->ranks[first], &t->ranks[last + 1]))
                break;
        write_title(t, first, last, dim, plain, out);
        write_rank(&t->ranks[first], out);
    }
    if (!t->rank_count) {
        fprintf(out, "  no collectives of NCCL's were recorded\n");
        return;
    }
    if (!t->measured)
        fprintf(out,
                "  warning: nothing was measured on %s: from its data "
                "sheet\n",
                t->cluster);
    fprintf(out,
            "  The sum of each call's time alone, on nodes of %" PRIu32
            " GPUs: no time of a step,\n  which overlaps them with "
            "computing and waits for other ranks.\n",
            t->gpus_per_node);
}
