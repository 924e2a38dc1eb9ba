/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/replay_owners.h"

#include "common/trace/play.h"
#include "memsim/attribution/peak.h"

int replay_owners_take(struct result_rank *rank, const struct recording *rec,
                       struct err *err)
{
    struct peak_reading reading;

    if (!rec->trace || !rec->plan.exact)
        return 0;
    const struct trace_listener listener = peak_reading_init(&reading);
    int rc = trace_play_file(rec->path, &listener, err);
    for (size_t i = 0; !rc && i < rank->device_count; i++) {
        struct result_device *d = &rank->devices[i];
        struct peak_card *card =
            d->card < SESSION_DEVICES ? &reading.peak.cards[d->card] : NULL;

        if (card && card->torch && !d->oom_count &&
            card->allocated_bytes == d->peak_allocated_bytes)
            result_device_take(d, card);
    }
    peak_reading_fini(&reading);
    return rc;
}
