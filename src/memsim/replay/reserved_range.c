/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/reserved_range.h"

static void range_extend(struct reserved_range *r, uint64_t bytes)
{
    if (!r->most_bytes || bytes < r->least_bytes)
        r->least_bytes = bytes;
    if (bytes > r->most_bytes)
        r->most_bytes = bytes;
}

/* Replays REC under CONFIG. One that runs out of memory says nothing. Returns
 * how many workspaces have no certain size, or -1. */
static int64_t replay_once(const struct recording *rec,
                           const struct replay_config *config,
                           struct reserved_range ranges[REPLAY_DEVICES],
                           struct err *err)
{
    struct replay_result result;

    if (replay_run(rec->whatif.source, config, &rec->plan, NULL, &result, err))
        return -1;
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        if (result.devices[i].used && result.fits)
            range_extend(&ranges[i], result.devices[i].peak_reserved_bytes);
    int64_t unknown = (int64_t)result.sizes_unknown;
    replay_result_fini(&result);
    return unknown;
}

/* With the workspaces as small and as large as they may be, where any has no
 * certain size. */
static int replay_sizes(const struct recording *rec,
                        const struct replay_config *config,
                        struct reserved_range ranges[REPLAY_DEVICES],
                        struct err *err)
{
    struct replay_config changed = *config;

    changed.workspaces = REPLAY_LEAST_WORKSPACES;
    int64_t unknown = replay_once(rec, &changed, ranges, err);
    if (unknown <= 0)
        return (int)unknown;
    changed.workspaces = REPLAY_MOST_WORKSPACES;
    return replay_once(rec, &changed, ranges, err) < 0 ? -1 : 0;
}

int reserved_range_find(const struct recording *rec,
                        struct reserved_range ranges[REPLAY_DEVICES],
                        struct err *err)
{
    struct replay_config config = rec->whatif.config;

    config.listener = NULL;
    config.watcher = NULL;
    for (int i = 0; i < REPLAY_DEVICES; i++)
        if (rec->plan.peak_reserved_bytes[i])
            range_extend(&ranges[i], rec->plan.peak_reserved_bytes[i]);
    if (replay_sizes(rec, &config, ranges, err))
        return -1;
    config.addresses = config.addresses == VASPACE_ASCENDING
                           ? VASPACE_CHUNKS
                           : VASPACE_ASCENDING;
    if (replay_once(rec, &config, ranges, err) < 0)
        return -1;
    return replay_sizes(rec, &config, ranges, err);
}

bool reserved_range_matters(const struct reserved_range *r)
{
    return r->most_bytes - r->least_bytes > r->most_bytes / 100;
}
