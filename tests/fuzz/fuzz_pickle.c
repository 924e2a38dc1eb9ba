/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on the snapshot reader and all that a snapshot goes through: a
 * snapshot that is taken must be written so that it reads the same, and must
 * replay or be refused with a reason. */
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "memsim/replay/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void check_written(const struct snapshot *s)
{
    char *text = NULL;
    size_t bytes = 0;
    struct snapshot again;
    struct err err = {""};
    FILE *f = open_memstream(&text, &bytes);

    demand(snapshot_write(s, f) == 0);
    fclose(f);
    demand(snapshot_parse(text, bytes, "again", &again, &err) == 0);
    demand(again.segment_count == s->segment_count);
    for (size_t i = 0; i < s->segment_count; i++)
        demand(again.segments[i].address == s->segments[i].address &&
               again.segments[i].block_count == s->segments[i].block_count);
    demand(again.trace_count == s->trace_count);
    for (size_t i = 0; i < s->trace_count; i++)
        demand(again.traces[i].count == s->traces[i].count);
    snapshot_fini(&again);
    free(text);
}

static void check_replays(const struct replay_source *source,
                          const struct replay_config *config)
{
    struct replay_plan plan;
    struct replay_result result;
    struct err err = {""};

    if (replay_mirror(source, config, &plan, &err)) {
        demand(err.text[0] != '\0');
        return;
    }
    demand(plan.exact || plan.difference[0] != '\0');
    if (replay_run(source, config, &plan, NULL, &result, &err))
        demand(err.text[0] != '\0');
    replay_result_fini(&result);
    replay_plan_fini(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct snapshot s;
    struct replay_snapshot source;
    struct replay_config config = {.total_bytes = 24 * GIB};
    struct err err = {""};

    if (snapshot_parse(data, size, "fuzz", &s, &err)) {
        demand(err.text[0] != '\0');
        return 0;
    }
    check_written(&s);
    config.rules = alloc_rules_find("2.11", NULL, &err);
    alloc_conf_init(&config.conf);
    if (!replay_snapshot_open(&source, &s, &config.conf, "fuzz", &err)) {
        check_replays(&source.source, &config);
        replay_snapshot_close(&source);
    } else {
        demand(err.text[0] != '\0');
    }
    snapshot_fini(&s);
    return 0;
}
