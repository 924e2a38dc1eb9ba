/* SPDX-License-Identifier: Apache-2.0
 * The page of --html: nothing in a result gets out of the element that it is
 * in, and no result makes a page too large to open. */
#include "memsim/report/page/report_html.h"

#include <cjson/cJSON.h>

#include "check.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/report.h"
#include "memsim/time/timing.h"

#define DATA_START "id=\"result\">"

static const char hostile[] = "</script><script>alert(1)</script><!-- ' \" \\ "
                              "&lt; \u2028 \u2029 \u20ac \r\n\t\x01 @RESULT@";

/* The page of RESULT. */
static char *page_of(const struct result *result)
{
    const struct report_style style = {.color = false};
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    report_html.write(result, &style, out);
    fclose(out);
    CHECK_UINT(strlen(text), bytes); /* no NUL in it */
    return text;
}

/* The data of PAGE, as its script reads it; cuts the page there. */
static cJSON *data_of(char *page)
{
    char *data = strstr(page, DATA_START), *end;

    CHECK(data);
    if (!data)
        exit(1);
    data += sizeof DATA_START - 1;
    end = strchr(data, '<');
    CHECK(!strncmp(end, "</script>", 9));
    *end = '\0';
    CHECK(!strpbrk(data, ">&"));
    CHECK(!strstr(data, "\u2028") && !strstr(data, "\u2029"));
    return cJSON_Parse(data);
}

static cJSON *first_device(const cJSON *root)
{
    const cJSON *rank = cJSON_GetObjectItem(root, "ranks")->child;

    return cJSON_GetObjectItem(rank, "devices")->child;
}

static bool is_built(void)
{
    struct err err = {""};

    if (!report_html_check(&err))
        return true;
    CHECK(strstr(err.text, "libjs-chart.js"));
    printf("SKIP: %s\n", err.text);
    return false;
}

TEST(texts_stay_data)
{
    char *command[] = {(char *)hostile, NULL};
    struct peak_thing thing = {.bytes = 1};
    struct result_device device = {
        .capacity_bytes = GIB, .things = &thing, .thing_count = 1};
    struct result_rank rank = {.devices = &device, .device_count = 1};
    struct result result = {
        .command = command, .ranks = &rank, .rank_count = 1};

    if (!is_built())
        return;
    snprintf(thing.label, sizeof thing.label, "%s", hostile);
    char *page = page_of(&result);
    cJSON *root = data_of(page);
    CHECK(root);
    CHECK_STR(cJSON_GetObjectItem(root, "command")->child->valuestring,
              hostile);
    cJSON *things = cJSON_GetObjectItem(first_device(root), "things_at_peak");
    CHECK_STR(cJSON_GetObjectItem(things->child, "label")->valuestring,
              hostile);
    CHECK(!cJSON_GetObjectItem(first_device(root), "left_out"));
    cJSON_Delete(root);
    free(page);
}

/* Ten times the modules and more blocks than are told of, half of them in one
 * whose name is long. */
TEST(large_results_are_cut_down)
{
    enum { MODULES = 100 * 1000, BLOCKS = 60 * 1000, CARDS = 2 };
    char name[1001];
    struct attribution a = {
        .module_count = MODULES, .block_count = BLOCKS, .segment_count = 1};
    struct attribution_segment segment = {.count = BLOCKS};
    char *command[] = {NULL};
    struct result_device devices[CARDS];
    struct result_rank rank = {.devices = devices, .device_count = CARDS};
    struct result result = {
        .command = command, .ranks = &rank, .rank_count = 1};

    if (!is_built())
        return;
    memset(name, '<', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    a.modules = xcalloc(MODULES, sizeof *a.modules);
    a.blocks = xcalloc(BLOCKS, sizeof *a.blocks);
    a.segments = &segment;
    for (size_t i = 0; i < MODULES; i++)
        a.modules[i] = (struct attribution_module){
            .name = i == 7 ? name : (char *)"model.layer", .parent = SIZE_MAX};
    for (size_t i = 0; i < BLOCKS; i++)
        a.blocks[i] = (struct attribution_block){.address = i,
                                                 .bytes = 1,
                                                 .allocated = true,
                                                 .module = i % 2 ? 7 : 8,
                                                 .label = (char *)"made"};
    for (unsigned i = 0; i < CARDS; i++)
        devices[i] = (struct result_device){
            .index = i, .capacity_bytes = GIB, .attribution = &a};
    char *page = page_of(&result);
    CHECK(strlen(page) < 40 * MIB);
    cJSON *root = data_of(page), *device = first_device(root);
    cJSON *left_out = cJSON_GetObjectItem(device, "left_out");
    CHECK(!cJSON_GetObjectItem(device, "segments_at_peak"));
    CHECK(cJSON_GetObjectItem(left_out, "segments_at_peak")->valuedouble >
          24 * MIB);
    CHECK_UINT(
        (uint64_t)cJSON_GetArraySize(cJSON_GetObjectItem(device, "modules")),
        10000);
    CHECK_UINT(
        (uint64_t)cJSON_GetObjectItem(device, "modules_dropped")->valuedouble,
        MODULES - 10000);
    cJSON_Delete(root);
    free(page);
    free(a.modules);
    free(a.blocks);
}

/* A job of three ranks of many steps, whose timelines do not all have room. */
TEST(the_slowest_rank_goes_last)
{
    enum { STEPS = 10000, RANKS = 3, BLOCKS = 15 * 1000, SLOWEST = 2 };
    char *command[] = {NULL};
    char *name = xmalloc(1000);
    struct attribution a = {.block_count = BLOCKS, .segment_count = 1};
    struct attribution_segment segment = {.count = BLOCKS};
    struct timing_step *steps = xcalloc(RANKS * STEPS, sizeof *steps);
    struct timing timings[RANKS];
    struct result_device devices[RANKS];
    struct result_rank ranks[RANKS];
    struct result result = {
        .command = command, .ranks = ranks, .rank_count = RANKS};

    if (!is_built()) {
        free(steps);
        free(name);
        return;
    }
    memset(name, 'x', 999);
    name[999] = '\0';
    a.segments = &segment;
    a.blocks = xcalloc(BLOCKS, sizeof *a.blocks);
    for (size_t i = 0; i < BLOCKS; i++)
        a.blocks[i] = (struct attribution_block){.bytes = 1,
                                                 .allocated = true,
                                                 .module = SIZE_MAX,
                                                 .label = name};
    for (unsigned i = 0; i < RANKS; i++) {
        for (size_t k = 0; k < STEPS; k++)
            steps[i * STEPS + k].duration_ns = 1000 + k + 1000 * i;
        timings[i] = (struct timing){.steps = steps + i * STEPS,
                                     .step_count = STEPS,
                                     .typical = 7 + i};
        devices[i] = (struct result_device){.capacity_bytes = GIB,
                                            .peak_used_bytes = MIB * (9 - i),
                                            .attribution = &a};
        ranks[i] = (struct result_rank){.rank = i,
                                        .devices = &devices[i],
                                        .device_count = 1,
                                        .timing = &timings[i]};
    }
    char *page = page_of(&result);
    cJSON *root = data_of(page), *rank;
    unsigned i = 0;
    cJSON_ArrayForEach(rank, cJSON_GetObjectItem(root, "ranks")) {
        cJSON *kept = cJSON_GetObjectItem(rank, "steps");
        CHECK_UINT((uint64_t)cJSON_GetArraySize(kept), 1);
        CHECK_UINT((uint64_t)cJSON_GetNumberValue(
                       cJSON_GetObjectItem(kept->child, "index")),
                   7 + i);
        cJSON *device = cJSON_GetObjectItem(rank, "devices")->child;
        CHECK(!cJSON_GetObjectItem(device, "segments_at_peak") ==
              (i != SLOWEST));
        i++;
    }
    CHECK_UINT(i, RANKS);
    cJSON_Delete(root);
    free(page);
    free(a.blocks);
    free(steps);
    free(name);
}
