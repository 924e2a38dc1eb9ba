/* SPDX-License-Identifier: Apache-2.0
 * The steps of a job's ranks side by side, in 80 columns. */
#include <stdlib.h>

#include "memsim/report/text/time_report.h"

#define RANKS_SHOWN 16

static double ms_of(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void write_rank(const struct result_rank *rank, bool slowest, FILE *out)
{
    const struct timing_step *s = &rank->timing->steps[rank->timing->typical];
    char *members = result_rank_members(rank);

    fprintf(out, "  %-12.12s %9.2f %9.2f %8.2f %8.2f %8.2f %8.2f %8.2f%s\n",
            members, ms_of(s->duration_ns), ms_of(s->compute_ns),
            ms_of(s->overlapped_comm_ns),
            ms_of(s->exposed_comm_ns - s->peers_ns), ms_of(s->peers_ns),
            ms_of(s->bubble_ns),
            ms_of(s->exposed_copy_ns + s->host_bound_ns + s->other_ns),
            slowest ? " *" : "");
    free(members);
}

void time_ranks_write(const struct result *result, const char *dim,
                      const char *plain, FILE *out)
{
    const struct result_rank *slowest = time_slowest_rank(result);
    size_t count = 0;

    for (size_t i = 0; i < result->rank_count; i++)
        count += result->ranks[i].timing &&
                 timing_step_ns(result->ranks[i].timing) > 0;
    if (count < 2)
        return;
    fprintf(out,
            "  %sstep of each rank, ms (* the slowest; communication beside "
            "compute,\n  exposed, and waiting for other ranks)%s\n"
            "  %-12s %9s %9s %8s %8s %8s %8s %8s\n",
            dim, plain, "ranks", "step", "compute", "beside", "exposed",
            "waiting", "bubble", "other");
    size_t shown = 0;
    for (size_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        if (!rank->timing || !timing_step_ns(rank->timing))
            continue;
        if (shown++ < RANKS_SHOWN || rank == slowest)
            write_rank(rank, rank == slowest, out);
    }
    if (shown > RANKS_SHOWN)
        fprintf(out, "  %zu ranks in all; --json has them\n", shown);
}
