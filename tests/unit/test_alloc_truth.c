/* SPDX-License-Identifier: Apache-2.0
 * Recordings made on real GPUs: every block must come out at its recorded
 * address. The files are optional test data beside the tree; without them the
 * test is skipped. */
#include <cjson/cJSON.h>
#include <dirent.h>

#include "common/base/units.h"
#include "memsim/replay/replay.h"
#include "check.h"

static char *read_gzip(const char *path)
{
    char *command = NULL, *text = malloc(64 << 20);
    size_t n = 0, got;

    if (asprintf(&command, "gzip -dc '%s'", path) < 0)
        return NULL;
    FILE *f = popen(command, "r");
    while ((got = fread(text + n, 1, (64 << 20) - 1 - n, f)) > 0)
        n += got;
    text[n] = '\0';
    free(command);
    return pclose(f) ? NULL : text;
}

static uint64_t number(const cJSON *array, int index)
{
    const cJSON *n = cJSON_GetArrayItem(array, index);

    return n && cJSON_IsNumber(n) ? (uint64_t)n->valuedouble : 0;
}

static void read_segment(struct snapshot *s, const cJSON *from)
{
    struct snapshot_segment *g = snapshot_add_segment(s);
    const cJSON *b, *blocks = cJSON_GetArrayItem(from, 6);

    g->address = number(from, 0);
    g->bytes = number(from, 1);
    g->stream = number(from, 2);
    g->small = !strcmp(cJSON_GetArrayItem(from, 3)->valuestring, "small");
    g->blocks = calloc((size_t)cJSON_GetArraySize(blocks), sizeof *g->blocks);
    cJSON_ArrayForEach(b, blocks)
        g->blocks[g->block_count++] = (struct snapshot_block){
        .address = number(b, 0),
        .bytes = number(b, 1),
        .requested_bytes = number(b, 3),
        .state =
            strcmp(cJSON_GetArrayItem(b, 2)->valuestring, "active_allocated")
                ? SNAPSHOT_INACTIVE
                : SNAPSHOT_ALLOCATED,
    };
}

/* The recordings number the actions in their own order. */
static enum alloc_action action_of(const cJSON *codes, uint64_t code)
{
    const cJSON *c;

    cJSON_ArrayForEach(c,
                       codes) if ((uint64_t)c->valuedouble ==
                                  code) return snapshot_action_find(c->string);
    return ALLOC_ACTIONS;
}

static void read_events(struct snapshot *s, const cJSON *root)
{
    const cJSON *codes =
        cJSON_GetObjectItem(cJSON_GetObjectItem(root, "meta"), "action_codes");
    const cJSON *e;

    cJSON_ArrayForEach(e, cJSON_GetObjectItem(root, "events"))
    {
        struct snapshot_event event = {
            .action = action_of(codes, number(e, 0)),
            .address = number(e, 1),
            .bytes = number(e, 2),
            .stream = number(e, 3),
            .time_us = number(e, 4),
        };

        CHECK(event.action != ALLOC_ACTIONS);
        snapshot_add_event(s, 0, &event);
    }
}

static cJSON *load(const char *path, struct snapshot *s)
{
    struct err err = {""};
    char *text = read_gzip(path);
    cJSON *root = text ? cJSON_Parse(text) : NULL;
    const cJSON *g;

    free(text);
    CHECK(root != NULL);
    if (!root)
        return NULL;
    cJSON_ArrayForEach(g, cJSON_GetObjectItem(root, "final_segments"))
        read_segment(s, g);
    read_events(s, root);
    if (snapshot_check(s, path, &err))
        CHECK_FAIL("%s", err.text);
    return root;
}

/* Names the torch that recorded it: "2.11.0+cu128 (uv.lock)". */
static struct replay_config config_of(const cJSON *root)
{
    const cJSON *meta = cJSON_GetObjectItem(root, "meta");
    const char *torch = cJSON_GetObjectItem(meta, "torch")->valuestring;
    struct err err = {""};
    bool known = false;
    struct replay_config config = {.total_bytes = 80 * GIB};

    config.rules = alloc_rules_find(torch, &known, &err);
    CHECK(config.rules && known);
    alloc_conf_init(&config.conf);
    return config;
}

static void check_stat(int64_t got, const cJSON *want, const char *name)
{
    CHECK_UINT((uint64_t)got,
               (uint64_t)cJSON_GetObjectItem(want, name)->valuedouble);
}

static void check_peaks(const struct alloc_stats *s, const cJSON *root)
{
    const cJSON *want = cJSON_GetObjectItem(root, "replay");

    check_stat(s->allocated_bytes[ALLOC_ALL].peak, want, "peak_allocated");
    check_stat(s->reserved_bytes[ALLOC_ALL].peak, want, "peak_reserved");
    check_stat(s->requested_bytes[ALLOC_ALL].peak, want, "peak_requested");
    check_stat(s->allocated_bytes[ALLOC_ALL].current, want, "end_allocated");
    check_stat(s->reserved_bytes[ALLOC_ALL].current, want, "end_reserved");
}

static void check_recording(const char *path)
{
    struct snapshot s = {0};
    struct replay_snapshot source;
    struct replay_plan plan;
    struct err err = {""};
    cJSON *root = load(path, &s);
    if (!root)
        return;
    struct replay_config config = config_of(root);
    size_t allocs = 0;

    for (size_t i = 0; i < s.traces[0].count; i++)
        allocs += s.traces[0].events[i].action == ALLOC_ALLOC;
    if (replay_snapshot_open(&source, &s, &config.conf, path, &err) ||
        replay_mirror(&source.source, &config, &plan, &err)) {
        CHECK_FAIL("%s: %s", path, err.text);
        return;
    }
    if (!plan.exact)
        CHECK_FAIL("%s: %s", path, plan.difference);
    CHECK_UINT(plan.blocks_checked, allocs);
    check_peaks(&plan.stats[0], root);
    struct replay_result result;
    CHECK(!replay_run(&source.source, &config, &plan, NULL, &result, &err));
    check_peaks(&result.devices[0].stats, root);
    replay_result_fini(&result);
    fprintf(stderr, "%s: %" PRIu64 " blocks at their recorded address\n",
            strrchr(path, '/') + 1, plan.blocks_checked);
    replay_plan_fini(&plan);
    replay_snapshot_close(&source);
    snapshot_fini(&s);
    cJSON_Delete(root);
}

TEST(real_recordings_come_out_at_their_addresses)
{
    const char *shared = check_shared("data/truth/snapshots_json");
    DIR *folder = opendir(shared);
    struct dirent *entry;
    char path[8192];
    int files = 0;

    while ((entry = readdir(folder))) {
        if (!strstr(entry->d_name, ".json.gz"))
            continue;
        snprintf(path, sizeof path, "%s/%s", shared, entry->d_name);
        check_recording(path);
        files++;
    }
    closedir(folder);
    CHECK(files > 0);
}
