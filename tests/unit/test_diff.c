/* SPDX-License-Identifier: Apache-2.0
 * Two runs' modules are matched, growth is laid to the part that grew, limits
 * are read, and what is read of JSON is what was written. */
#include "memsim/result/diff.h"

#include "check.h"
#include "common/base/units.h"
#include "memsim/report/json/result_read.h"

static char *command[] = {"true", NULL};

/* A module: PARENT is an index, -1 none. */
struct row {
    const char *name;
    int parent;
    uint64_t self_mib;
};

static struct attribution_module modules[2][8];
static struct attribution attributions[2];
static struct result_device devices[2];
static struct result_rank ranks[2];
static struct result results[2];

/* Run WHICH: modules, parents first, and MIB that are no module's. */
static void run_set(int which, const struct row *rows, size_t count,
                    uint64_t outside_mib)
{
    uint64_t total = outside_mib * MIB;

    memset(modules[which], 0, sizeof modules[which]);
    for (size_t i = count; i-- > 0;) {
        struct attribution_module *m = &modules[which][i];
        m->name = (char *)rows[i].name;
        m->parent = rows[i].parent < 0 ? SIZE_MAX : (size_t)rows[i].parent;
        m->self_bytes = rows[i].self_mib * MIB;
        m->bytes_at_peak += m->self_bytes;
        if (rows[i].parent >= 0)
            modules[which][rows[i].parent].bytes_at_peak += m->bytes_at_peak;
        total += m->self_bytes;
    }
    attributions[which] =
        (struct attribution){.modules = modules[which], .module_count = count};
    attributions[which].at_peak.bytes[TRACE_CATEGORY_ACTIVATION] = total;
    devices[which] =
        (struct result_device){.peak_allocated_bytes = total,
                               .peak_used_bytes = total,
                               .attribution = &attributions[which]};
    ranks[which] =
        (struct result_rank){.devices = &devices[which], .device_count = 1};
    results[which] = (struct result){
        .command = command, .ranks = &ranks[which], .rank_count = 1};
}

#define RUN(which, outside, ...)                                               \
    run_set(which, (struct row[]){__VA_ARGS__},                                \
            sizeof((struct row[]){__VA_ARGS__}) / sizeof(struct row), outside)

static const struct diff_module *module_find(const struct diff *d,
                                             const char *name)
{
    for (size_t i = 0; i < d->devices[0].module_count; i++)
        if (!strcmp(d->devices[0].modules[i].name, name))
            return &d->devices[0].modules[i];
    CHECK_FAIL("no module %s", name);
    return &d->devices[0].modules[0];
}

static void check_culprit(const char *name, bool itself, uint64_t grew_mib)
{
    struct diff d;

    diff_make(&d, &results[0], &results[1]);
    struct diff_culprit c = diff_culprit_find(&d.devices[0]);
    CHECK_STR(c.name, name);
    CHECK(c.itself == itself);
    CHECK_UINT(c.bytes.after - c.bytes.before, grew_mib * MIB);
    diff_fini(&d);
}

TEST(a_model_of_another_class_is_the_same_one)
{
    struct diff d;

    RUN(0, 1, {"Net", -1, 1}, {"a", 0, 2}, {"b", 0, 3});
    RUN(1, 1, {"Net2", -1, 1}, {"a", 0, 2}, {"c", 0, 4});
    diff_make(&d, &results[0], &results[1]);
    CHECK_UINT(d.device_count, 1);
    CHECK_UINT(d.devices[0].module_count, 4);
    const struct diff_module *net = module_find(&d, "Net2");
    CHECK(net->was && net->is);
    CHECK_UINT(net->held.before, 6 * MIB);
    CHECK_UINT(net->held.after, 7 * MIB);
    CHECK_UINT(net->moved_bytes, 7 * MIB); /* 3 gone and 4 new */
    CHECK_UINT(module_find(&d, "a")->moved_bytes, 0);
    CHECK(!module_find(&d, "b")->is && !module_find(&d, "c")->was);
    CHECK(&d.devices[0].modules[module_find(&d, "b")->parent] == net);
    CHECK_UINT(d.devices[0].outside.before, MIB);
    diff_fini(&d);
}

/* One model has no name before its modules', two have. */
TEST(a_second_model_leaves_the_first_one_its_modules)
{
    struct diff d;

    RUN(0, 0, {"G", -1, 0}, {"layers.0", 0, 2});
    RUN(1, 0, {"G", -1, 0}, {"G.layers.0", 0, 2}, {"D", -1, 0},
        {"D.layers.0", 2, 5});
    diff_make(&d, &results[0], &results[1]);
    CHECK_UINT(d.devices[0].module_count, 4);
    CHECK(module_find(&d, "G.layers.0")->was);
    CHECK(!module_find(&d, "D.layers.0")->was);
    diff_fini(&d);
    check_culprit("D.layers.0", false, 5);
}

TEST(growth_is_laid_to_the_part_that_most_of_it_is_in)
{
    RUN(0, 1, {"Net", -1, 1}, {"a", 0, 2}, {"a.x", 1, 3}, {"b", 0, 4});
    RUN(1, 1, {"Net", -1, 1}, {"a", 0, 2}, {"a.x", 1, 9}, {"b", 0, 5});
    check_culprit("a.x", false, 6);
    RUN(1, 1, {"Net", -1, 9}, {"a", 0, 2}, {"a.x", 1, 9}, {"b", 0, 5});
    check_culprit("Net", true, 8);
    RUN(1, 1, {"Net", -1, 3}, {"a", 0, 4}, {"a.x", 1, 3}, {"b", 0, 6});
    check_culprit("Net", false, 6); /* spread over its parts */
    RUN(1, 8, {"Net", -1, 1}, {"a", 0, 2}, {"a.x", 1, 3}, {"b", 0, 5});
    check_culprit("", true, 7);
    RUN(1, 0, {"Net", -1, 1}, {"a", 0, 2}, {"a.x", 1, 3}, {"b", 0, 4});
    struct diff d;
    diff_make(&d, &results[0], &results[1]);
    CHECK(!diff_culprit_find(&d.devices[0]).name);
    diff_fini(&d);
}

static bool is_past(const char *text)
{
    struct diff d;
    struct diff_limit limit;
    struct diff_excess excess;
    struct err err = {""};

    if (diff_limit_parse(text, &limit, &err)) {
        CHECK_FAIL("%s", err.text);
        return false;
    }
    diff_make(&d, &results[0], &results[1]);
    bool past = diff_is_past(&d, &limit, &excess);
    diff_fini(&d);
    return past;
}

TEST(limits_hold_at_their_value)
{
    struct diff_limit limit;
    struct err err = {""};

    RUN(0, 0, {"Net", -1, 100});
    RUN(1, 0, {"Net", -1, 110});
    CHECK(is_past("9.9%") && !is_past("10%"));
    CHECK(is_past("9MiB") && !is_past("10MiB") && is_past("0"));
    CHECK(is_past("0%"));
    CHECK(diff_limit_parse("ten", &limit, &err));
    CHECK(strstr(err.text, "'ten'") != NULL);
    RUN(1, 0, {"Net", -1, 90});
    CHECK(!is_past("0"));
    results[1].verdict = VERDICT_OOM;
    CHECK(is_past("10%"));
    results[0].verdict = VERDICT_OOM;
    CHECK(!is_past("10%"));
}

static const char report[] =
    "{\"schema\": 1, \"verdict\": \"over-limit\", \"exit_status\": 121,"
    "\"command\": [\"a\", \"b c\"], \"torch\": \"2.11.0\", \"gpu\": {"
    "\"name\": \"g\", \"device_name\": \"G\", \"memory_bytes\": 100},"
    "\"ranks\": [{\"rank\": 3, \"devices\": [{\"index\": 2,"
    "\"capacity_bytes\": 100, \"peak_allocated_bytes\": 50,"
    "\"peak_reserved_bytes\": 60, \"peak_used_bytes\": 70,"
    "\"headroom_bytes\": 30, \"categories_at_peak\": {\"parameter\": 20,"
    "\"unheard_of\": 30}, \"modules\": ["
    "{\"name\": \"x\", \"parent\": \"Net\", \"bytes_at_peak\": 20,"
    "\"own_peak_bytes\": 21, \"calls\": 4},"
    "{\"name\": \"Net\", \"bytes_at_peak\": 50, \"own_peak_bytes\": 51,"
    "\"calls\": 2}], \"modules_at_peak\": ["
    "{\"name\": \"x\", \"bytes\": 20}, {\"name\": \"\", \"bytes\": 30}]}]}]}";

TEST(a_report_is_read_as_it_was_written)
{
    struct result_file f;
    struct err err = {""};

    if (result_read(report, sizeof report - 1, "r.json", &f, &err)) {
        CHECK_FAIL("%s", err.text);
        return;
    }
    const struct result_device *d = &f.result.ranks[0].devices[0];
    CHECK(f.result.verdict == VERDICT_OVER_LIMIT && f.result.finished);
    CHECK_STR(f.result.command[1], "b c");
    CHECK_STR(f.result.torch_version, "2.11.0");
    CHECK_STR(f.result.gpu.device_name, "G");
    CHECK_UINT(f.result.ranks[0].rank, 3);
    CHECK_UINT(d->index, 2);
    CHECK_UINT(d->peak_used_bytes, 70);
    CHECK_UINT(d->attribution->at_peak.bytes[TRACE_CATEGORY_PARAMETER], 20);
    CHECK_UINT(d->attribution->at_peak.bytes[TRACE_CATEGORY_OTHER], 30);
    CHECK_UINT(d->attribution->module_count, 2);
    CHECK_UINT(d->attribution->modules[0].parent, 1);
    CHECK_UINT(d->attribution->modules[0].self_bytes, 20);
    CHECK_UINT(d->attribution->modules[1].self_bytes, 0);
    CHECK_UINT(d->attribution->modules[1].calls, 2);
    result_file_fini(&f);
}

/* Whatever is cut off or spoilt, there is one message and nothing leaks. */
TEST(a_report_that_is_cut_short_is_refused)
{
    for (size_t length = 0; length < sizeof report - 1; length++) {
        struct result_file f;
        struct err err = {""};
        CHECK(result_read(report, length, "r.json", &f, &err) == -1);
        CHECK(strstr(err.text, "r.json") != NULL);
    }
}
