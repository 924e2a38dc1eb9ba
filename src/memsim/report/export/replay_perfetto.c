/* SPDX-License-Identifier: Apache-2.0
 * A replay as a trace of events: what its GPUs stood at under the first
 * settings, when the recording called which modules, and the predicted
 * timeline. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "common/base/json_add.h"
#include "memsim/report/export/perfetto_time.h"
#include "memsim/report/export/perfetto_trace.h"
#include "memsim/report/text/replay_report.h"

struct player {
    struct perfetto_card cards[REPLAY_DEVICES];
    uint64_t start_ns; /* of the first step; UINT64_MAX: there is none */
    struct perfetto_log *log; /* of the trace; NULL: it is a snapshot */
    struct err err;           /* why it was not read to its end */
};

static void watch_moment(void *context, const struct replay_moment *now)
{
    struct player *p = context;
    struct perfetto_card *card = &p->cards[now->device];

    if (now->time_ns < p->start_ns)
        p->start_ns = now->time_ns;
    perfetto_card_allocated(card, now->index, now->time_ns,
                            now->allocated_bytes, now->reserved_bytes);
    perfetto_card_used(card, now->index, now->time_ns, now->used_bytes);
}

static int play_recording(const struct recording *rec, struct player *p,
                          struct err *err)
{
    struct replay_config config = rec->whatif.config;
    struct replay_result result;

    alloc_conf_init(&config.conf);
    config.watcher = watch_moment;
    config.listener_context = p;
    if (alloc_conf_parse(&config.conf, rec->whatif.rows[0].conf, config.rules,
                         err) ||
        replay_run(rec->whatif.source, &config, &rec->plan, NULL, &result, err))
        return -1;
    replay_result_fini(&result);
    return 0;
}

/* The NTH recording of REC's rank; CLOCK may be NULL. */
static void recording_write(const struct recording *rec,
                            struct player *p, struct perfetto *to,
                            unsigned nth, const struct time_log *clock,
                            cJSON *told)
{
    struct perfetto_process process = {
        .to = to, .track = perfetto_track_of(rec->info.rank, nth)};

    if (!nth) {
        char *name = xasprintf("rank %u: %s", rec->info.rank,
                               rec->trace ? rec->info.program : rec->path);
        perfetto_name_process(to, process.track, name);
        free(name);
    }
    perfetto_time_clock(to, clock);
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        perfetto_card_write(&p->cards[i], to, process.track,
                            rec->trace ? rec->info.devices[i].card : i);
    if (p->log)
        perfetto_log_write(p->log, &process);
    perfetto_process_told(told, rec->info.rank, &process, &p->err);
    perfetto_time_clock(to, NULL);
}

static unsigned earlier_of_rank(const struct replay_report *r, size_t index)
{
    unsigned count = 0;

    for (size_t i = 0; i < index; i++)
        count += recording_is_used(&r->recordings[i]) &&
                 r->recordings[i].info.rank == r->recordings[index].info.rank;
    return count;
}

static void recordings_write(const struct replay_report *r, struct perfetto *to,
                             cJSON *told)
{
    struct player *players = xcalloc(r->count + 1, sizeof *players);
    struct err err = {""};

    to->origin_ns = perfetto_time_start(&r->result);
    for (size_t i = 0; i < r->count; i++) {
        uint64_t start_ns = UINT64_MAX;
        players[i].start_ns = UINT64_MAX;
        if (!recording_is_used(&r->recordings[i]))
            continue;
        play_recording(&r->recordings[i], &players[i], &err);
        if (r->recordings[i].trace) {
            players[i].log = perfetto_trace_read(
                r->recordings[i].path, PERFETTO_NO_PEAK, &players[i].err);
            start_ns = perfetto_log_start(players[i].log);
        }
        if (players[i].start_ns < start_ns)
            start_ns = players[i].start_ns;
        if (start_ns < to->origin_ns)
            to->origin_ns = start_ns;
    }
    for (size_t i = 0; i < r->count; i++) {
        unsigned nth = earlier_of_rank(r, i);
        if (recording_is_used(&r->recordings[i]) && nth < PERFETTO_PROCESSES)
            recording_write(&r->recordings[i], &players[i], to, nth,
                            result_timeline_find(&r->result, (uint32_t)i),
                            told);
        for (size_t j = 0; j < REPLAY_DEVICES; j++)
            perfetto_card_fini(&players[i].cards[j]);
        perfetto_log_destroy(players[i].log);
    }
    free(players);
    for (size_t i = 0; i < r->result.rank_count; i++)
        perfetto_time_write(to, &r->result, r->result.ranks[i].rank);
}

static void perfetto_write(const void *report,
                           const struct report_style *style, FILE *out)
{
    const struct replay_report *r = report;
    cJSON *metadata = perfetto_metadata(&r->result);
    cJSON *told = cJSON_AddArrayToObject(metadata, "processes");
    struct perfetto to;

    (void)style;
    perfetto_begin(&to, out);
    recordings_write(r, &to, told);
    perfetto_end(&to, metadata);
    cJSON_Delete(metadata);
}

const struct report_ops replay_report_perfetto = {.write = perfetto_write,
                                                  .gzip_by_name = true};
