/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "common/base/units.h"
#include "memsim/collectives/traffic.h"
#include "memsim/report/text/rank_text.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/run/rank_class.h"

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

static bool ranks_alike(const void *list, size_t one, size_t other)
{
    const struct traffic *t = list;
    const struct traffic_rank *a = &t->ranks[one], *b = &t->ranks[other];

    if (a->row_count != b->row_count || a->steps != b->steps)
        return false;
    for (size_t i = 0; i < a->row_count; i++)
        if (!same_row(&a->rows[i], &b->rows[i]))
            return false;
    return true;
}

static void members_add(const void *list, size_t item, struct rank_set *to)
{
    const struct traffic *t = list;

    rank_set_add(to, t->ranks[item].rank);
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

static void write_title(const struct traffic *t, const struct rank_class *class,
                        const char *dim, const char *plain, FILE *out)
{
    const struct traffic_rank *r = &t->ranks[class->first];

    fprintf(out, "  %scollectives on %s", dim, t->cluster);
    if (t->rank_count > 1) {
        fputs(", ", out);
        rank_text_write(&class->members, out);
    }
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

/* Where prices come from that nobody measured. */
static void write_basis(const struct traffic *t, FILE *out)
{
    char line[512];

    if (t->measured)
        return;
    if (t->by_gpu)
        snprintf(line, sizeof line, "no cluster is known (--cluster): %s",
                 t->about);
    else
        snprintf(line, sizeof line,
                 "warning: nothing was measured on %s: from its data sheet",
                 t->cluster);
    text_write_wrapped(out, " ", line);
}

void traffic_text_write(const struct traffic *traffic, const char *dim,
                        const char *plain, FILE *out)
{
    static const struct rank_class_ops ops = {ranks_alike, members_add};
    const struct traffic *t = traffic;
    struct rank_classes classes;

    rank_classes_make(&classes, t->rank_count, &ops, t);
    for (size_t i = 0; i < classes.count; i++) {
        write_title(t, &classes.all[i], dim, plain, out);
        write_rank(&t->ranks[classes.all[i].first], out);
    }
    rank_classes_fini(&classes);
    if (!t->rank_count) {
        fprintf(out, "  no collectives of NCCL's were recorded\n");
        return;
    }
    write_basis(t, out);
    fprintf(out,
            "  The sum of each call's time alone, on nodes of %" PRIu32
            " GPUs: no time of a step,\n  which overlaps them with "
            "computing and waits for other ranks.\n",
            t->gpus_per_node);
}
