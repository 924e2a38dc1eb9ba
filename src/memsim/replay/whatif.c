/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/whatif.h"

#include <stdlib.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"

#define GRANULE (2 * MIB) /* of a GPU's memory */

/* Settings that people are told to try. Garbage is collected only below a
 * limit, which since 2.10 must be less than all of the GPU. */
static const char *const candidates[] = {
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:512",
    "roundup_power2_divisions:8",
    "garbage_collection_threshold:0.8,per_process_memory_fraction:0.99",
};

static int row_config(const struct whatif *w, const char *conf,
                      struct replay_config *config, struct err *err)
{
    *config = w->config;
    alloc_conf_init(&config->conf);
    return alloc_conf_parse(&config->conf, conf, config->rules, err);
}

static const struct replay_oom *fatal_oom(const struct replay_device *d)
{
    const struct replay_oom *last =
        d->oom_count ? &d->ooms[d->oom_count - 1] : NULL;

    return last && !last->caught ? last : NULL;
}

/* The device to look at: one that ran out of memory, or the fullest. */
static unsigned device_choose(const struct replay_result *r)
{
    unsigned best = 0;

    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        if (fatal_oom(&r->devices[i]))
            return i;
        if (r->devices[i].peak_used_bytes > r->devices[best].peak_used_bytes)
            best = i;
    }
    return best;
}

struct look {
    struct whatif *w;
    const struct alloc_conf *conf;
    bool again; /* the replay stops where memory ran out, or at the peak */
};

/* Where a replay ran out of memory: at its end, if it ends there. What ran out
 * in the recording, too, goes on to free its memory when the program ends. */
static void look_at_oom(void *context, const struct replay_result *r)
{
    struct look *l = context;
    struct whatif *w = l->w;
    unsigned device = device_choose(r);
    const struct replay_oom *oom = fatal_oom(&r->devices[device]);
    struct fragments_request request;

    if (w->row_count || !oom || !r->engines[device] ||
        (oom->recorded && !l->again))
        return;
    request = (struct fragments_request){oom->requested_bytes, oom->stream,
                                         oom->pool};
    w->at_oom = true;
    w->oom_index = oom->recorded ? oom->index : UINT64_MAX;
    w->device = device;
    fragments_collect(&w->fragments, r->engines[device], l->conf, &request);
}

static void look_at_peak(void *context, const struct replay_result *r)
{
    struct look *l = context;
    struct fragments_request none = {0};

    if (r->engines[l->w->device])
        fragments_collect(&l->w->fragments, r->engines[l->w->device], l->conf,
                          &none);
}

/* Plays again, up to where memory ran out, or to the peak. */
static int look_again(struct whatif *w, const struct replay_config *config,
                      const struct replay_result *first, struct err *err)
{
    struct look l = {w, &config->conf, true};
    struct replay_result result;

    w->device = device_choose(first);
    const struct replay_device *d = &first->devices[w->device];
    const struct replay_oom *oom = fatal_oom(d);
    struct replay_look look = {oom ? oom->index : d->peak_index,
                               oom ? look_at_oom : look_at_peak, &l};
    if (replay_run(w->source, config, w->plan, &look, &result, err))
        return -1;
    replay_result_fini(&result);
    return 0;
}

int whatif_add(struct whatif *w, const char *conf, bool advised,
               struct err *err)
{
    struct replay_config config;
    struct whatif_row row = {.advised = advised};
    struct look l = {w, &config.conf, false};
    struct replay_look look = {UINT64_MAX, look_at_oom, &l};

    if (row_config(w, conf, &config, err) ||
        replay_run(w->source, &config, w->plan, &look, &row.result, err))
        return -1;
    if (!w->row_count && !w->at_oom &&
        look_again(w, &config, &row.result, err)) {
        replay_result_fini(&row.result);
        return -1;
    }
    row.conf = xstrdup(conf);
    xgrow(&w->rows, w->row_count, &w->row_capacity, sizeof *w->rows);
    w->rows[w->row_count++] = row;
    return 0;
}

int whatif_advise(struct whatif *w, struct err *err)
{
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        struct alloc_conf conf;

        alloc_conf_init(&conf);
        if (!alloc_conf_parse(&conf, candidates[i], w->config.rules, NULL) &&
            whatif_add(w, candidates[i], true, err))
            return -1;
    }
    return 0;
}

const char *whatif_candidate(size_t i)
{
    return i < sizeof candidates / sizeof *candidates ? candidates[i] : NULL;
}

enum whatif_outcome whatif_outcome(const struct whatif *w,
                                   const struct replay_result *result)
{
    if (result->changed_course)
        return WHATIF_UNKNOWN;
    if (!result->fits)
        return WHATIF_OOM;
    return w->ending == REPLAY_WHOLE ? WHATIF_FITS : WHATIF_UNKNOWN;
}

typedef bool enough(struct whatif *w, const struct replay_result *result);

static bool enough_as_recorded(struct whatif *w,
                               const struct replay_result *result)
{
    enum whatif_outcome outcome = whatif_outcome(w, result);

    if (outcome != WHATIF_OOM)
        w->smallest_is_least = outcome == WHATIF_UNKNOWN;
    return outcome != WHATIF_OOM;
}

/* For the request that failed in the recording. */
static bool enough_to_depart(struct whatif *w,
                             const struct replay_result *result)
{
    (void)w;
    return result->changed_course;
}

static int fits_in(struct whatif *w, struct replay_config *config,
                   uint64_t bytes, enough *test, bool *fits, struct err *err)
{
    struct replay_result result;

    config->total_bytes = bytes;
    if (replay_run(w->source, config, w->plan, NULL, &result, err))
        return -1;
    *fits = test(w, &result);
    replay_result_fini(&result);
    return 0;
}

struct range {
    uint64_t least, most; /* bytes */
};

/* Sets *SMALLEST to the least memory from LEAST to MOST at which TEST says that
 * there is enough; 0: there is none. */
static int search_least(struct whatif *w, const char *conf, struct range range,
                        enough *test, uint64_t *smallest, struct err *err)
{
    struct replay_config config;
    uint64_t low = range.least / GRANULE;
    uint64_t high = (range.most + GRANULE - 1) / GRANULE;
    bool fits = false;

    *smallest = 0;
    if (row_config(w, conf, &config, err) ||
        fits_in(w, &config, high * GRANULE, test, &fits, err))
        return -1;
    if (!fits)
        return 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (fits_in(w, &config, middle * GRANULE, test, &fits, err))
            return -1;
        if (fits)
            high = middle;
        else
            low = middle + 1;
    }
    *smallest = high * GRANULE;
    return 0;
}

int whatif_sweep(struct whatif *w, const char *conf, uint64_t least,
                 uint64_t most, struct err *err)
{
    return search_least(w, conf, (struct range){least, most},
                        enough_as_recorded, &w->smallest_bytes, err);
}

int whatif_least(struct whatif *w, uint64_t recorded_bytes, struct err *err)
{
    const struct replay_result *first = &w->rows[0].result;
    uint64_t most = whatif_peak_used(first) + GRANULE;
    bool departs = first->changed_course;
    struct range range = {departs && recorded_bytes < most ? recorded_bytes : 0,
                          most};

    if (most > w->config.total_bytes)
        range.most = w->config.total_bytes;
    return search_least(w, w->rows[0].conf, range,
                        departs ? enough_to_depart : enough_as_recorded,
                        &w->needs_bytes, err);
}

uint64_t whatif_peak_used(const struct replay_result *r)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        if (r->devices[i].peak_used_bytes > most)
            most = r->devices[i].peak_used_bytes;
    return most;
}

const struct whatif_row *whatif_best(const struct whatif *w)
{
    const struct whatif_row *first = w->rows, *best = NULL;
    uint64_t limit = whatif_peak_used(&first->result) / 100 * 98;

    for (size_t i = 1; i < w->row_count; i++) {
        const struct whatif_row *row = &w->rows[i];
        uint64_t used = whatif_peak_used(&row->result);

        if (!row->advised ||
            whatif_outcome(w, &row->result) == WHATIF_OOM ||
            (whatif_outcome(w, &first->result) != WHATIF_OOM && used >= limit))
            continue;
        if (!best || used < whatif_peak_used(&best->result))
            best = row;
    }
    return best;
}

void whatif_fini(struct whatif *w)
{
    for (size_t i = 0; i < w->row_count; i++) {
        replay_result_fini(&w->rows[i].result);
        free(w->rows[i].conf);
    }
    free(w->rows);
    fragments_fini(&w->fragments);
}
