/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/reserved_range.h"

#include "memsim/replay/reserved_emptied.h"

static void range_extend(struct reserved_range *r, uint64_t bytes)
{
    if (!r->most_bytes || bytes < r->least_bytes)
        r->least_bytes = bytes;
    if (bytes > r->most_bytes)
        r->most_bytes = bytes;
}

struct search {
    const struct recording *rec;
    struct replay_config config;
    struct reserved_range *ranges; /* REPLAY_DEVICES */
    bool is_full; /* with the largest workspaces the cache had to be emptied */
};

static bool has_more_retries(const struct search *s,
                             const struct replay_result *result, unsigned i)
{
    return result->devices[i].stats.num_alloc_retries >
           s->rec->plan.stats[i].num_alloc_retries;
}

/* Replays the recording with the cache emptied as PLAN says. One that runs out
 * of memory says nothing. Returns how many workspaces have no certain size, or
 * -1. */
static int64_t replay_once(struct search *s, const struct replay_plan *plan,
                           struct err *err)
{
    struct replay_result result;

    if (replay_run(s->rec->whatif.source, &s->config, plan, NULL, &result, err))
        return -1;
    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        const struct replay_device *d = &result.devices[i];

        if (!d->used || !result.fits)
            continue;
        range_extend(&s->ranges[i], d->peak_reserved_bytes);
        s->is_full |= has_more_retries(s, &result, i);
    }
    int64_t unknown = (int64_t)result.sizes_unknown;
    replay_result_fini(&result);
    return unknown;
}

/* With the workspaces as small and as large as they may be, where any has no
 * certain size. */
static int replay_sizes(struct search *s, struct err *err)
{
    s->config.workspaces = REPLAY_LEAST_WORKSPACES;
    int64_t unknown = replay_once(s, &s->rec->plan, err);
    if (unknown > 0) {
        s->config.workspaces = REPLAY_MOST_WORKSPACES;
        unknown = replay_once(s, &s->rec->plan, err);
    }
    s->config.workspaces = REPLAY_WORKSPACES;
    return unknown < 0 ? -1 : 0;
}

/* With the cache emptied when a convolution is called first. */
static int replay_emptied(struct search *s, struct err *err)
{
    struct reserved_moments moments;

    if (reserved_moments_find(s->rec->whatif.source, &moments, err))
        return -1;
    for (size_t i = 0; i < moments.count; i++) {
        struct replay_plan plan;

        reserved_moment_plan(&s->rec->plan, &moments.at[i], &plan);
        int64_t unknown = replay_once(s, &plan, err);
        replay_plan_fini(&plan);
        if (unknown < 0)
            return -1;
    }
    return 0;
}

int reserved_range_find(const struct recording *rec,
                        struct reserved_range ranges[REPLAY_DEVICES],
                        struct err *err)
{
    struct search s = {
        .rec = rec, .config = rec->whatif.config, .ranges = ranges};

    s.config.listener = NULL;
    s.config.watcher = NULL;
    for (int i = 0; i < REPLAY_DEVICES; i++)
        if (rec->plan.peak_reserved_bytes[i])
            range_extend(&ranges[i], rec->plan.peak_reserved_bytes[i]);
    if (replay_sizes(&s, err) || (s.is_full && replay_emptied(&s, err)))
        return -1;
    s.config.addresses = s.config.addresses == VASPACE_ASCENDING
                             ? VASPACE_CHUNKS
                             : VASPACE_ASCENDING;
    if (replay_once(&s, &rec->plan, err) < 0)
        return -1;
    return replay_sizes(&s, err);
}

bool reserved_range_matters(const struct reserved_range *r)
{
    return r->most_bytes - r->least_bytes > r->most_bytes / 100;
}
