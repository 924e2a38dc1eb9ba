/* SPDX-License-Identifier: Apache-2.0
 * What 2.11 makes of each text was taken from its libc10.so. */
#include "common/base/units.h"
#include "memsim/alloc/alloc_conf.h"
#include "check.h"

static const struct alloc_rules *rules(const char *version)
{
    struct err err = {""};
    const struct alloc_rules *r = alloc_rules_find(version, NULL, &err);

    if (!r)
        CHECK_FAIL("%s", err.text);
    return r;
}

static struct alloc_conf parsed(const char *version, const char *text)
{
    struct alloc_conf conf;
    struct err err = {""};

    alloc_conf_init(&conf);
    if (alloc_conf_parse(&conf, text, rules(version), &err))
        CHECK_FAIL("%s", err.text);
    return conf;
}

static const char *refused(const char *version, const char *text)
{
    static struct err err;
    struct alloc_conf conf, before;

    err_clear(&err);
    alloc_conf_init(&conf);
    before = conf;
    CHECK(alloc_conf_parse(&conf, text, rules(version), &err) == -1);
    CHECK(!memcmp(&conf, &before, sizeof conf));
    return err.text;
}

TEST(versions_choose_their_row)
{
    struct err err = {""};
    bool known = false;

    CHECK_UINT(rules("2.5.1+cu124")->minor, 5);
    CHECK_UINT(rules("2.9.1")->minor, 8);
    CHECK(alloc_rules_find("2.11.0", &known, &err)->minor == 11 && known);
    CHECK(alloc_rules_find("2.15.0", &known, &err)->minor == 13 && known);
    CHECK(alloc_rules_find("3.0", &known, &err)->minor == 13 && !known);
    CHECK(alloc_rules_find("2.4.1", &known, &err) == NULL && err.text[0]);
    err_clear(&err);
    CHECK(alloc_rules_find("nightly", &known, &err) == NULL && err.text[0]);
}

TEST(reads_what_torch_reads)
{
    struct alloc_conf c = parsed(
        "2.11", "max_split_size_mb:100, garbage_collection_threshold:0.8,"
                "expandable_segments:True,pinned_num_register_threads:4,");

    CHECK_UINT(c.max_split_bytes, 100 * MIB);
    CHECK(c.gc_threshold == 0.8);
    CHECK(c.expandable_segments);
    CHECK_UINT(parsed("2.11", "").max_split_bytes, UINT64_MAX);
    CHECK_UINT(parsed("2.11", "max_split_size_mb: 1 00").max_split_bytes,
               100 * MIB);
    CHECK(parsed("2.11", "per_process_memory_fraction:0.5").memory_fraction ==
          0.5);
}

TEST(large_segments_bound_the_rest_wherever_they_stand)
{
    struct alloc_conf c =
        parsed("2.11", "max_split_size_mb:60,large_segment_size_mb:50");

    CHECK_UINT(c.large_segment_bytes, 50 * MIB);
    CHECK_UINT(c.max_split_bytes, 60 * MIB);
    CHECK_UINT(c.max_non_split_rounding_bytes, 50 * MIB);
    CHECK_STR(refused("2.11", "max_split_size_mb:30,large_segment_size_mb:50"),
              "alloc-conf:19: '30': must be at least 50");
    CHECK_STR(refused("2.10", "large_segment_size_mb:50"),
              "alloc-conf:1: 'large_segment_size_mb': this torch version does "
              "not know the option");
}

TEST(new_settings_forget_most_old_ones)
{
    struct alloc_conf c = parsed("2.11", "max_split_size_mb:100,"
                                         "large_segment_size_mb:30,"
                                         "expandable_segments:True");
    struct err err = {""};

    CHECK(!alloc_conf_parse(&c, "garbage_collection_threshold:0.5",
                            rules("2.11"), &err));
    CHECK_UINT(c.max_split_bytes, UINT64_MAX);
    CHECK(c.expandable_segments);
    CHECK_UINT(c.large_segment_bytes, 30 * MIB);
    CHECK_UINT(c.max_non_split_rounding_bytes, 30 * MIB);
}

static void check_divisions(const char *version, const char *text,
                            const char *want)
{
    struct alloc_conf c = parsed(version, text);
    char got[128] = "";

    for (int i = 0; i < ALLOC_ROUNDUP_INTERVALS; i++)
        sprintf(got + strlen(got), "%s%" PRIu64, i ? " " : "",
                c.roundup_divisions[i]);
    CHECK_STR(got, want);
}

TEST(divisions_go_by_interval)
{
    check_divisions("2.11", "roundup_power2_divisions:4",
                    "4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4");
    check_divisions("2.11", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                    "1 1 1 1 1 1 1 1 1 2 4 8 8 8 8 8");
    check_divisions("2.8", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                    "1 1 1 1 1 1 1 1 1 2 8 8 8 8 8 8");
    check_divisions("2.11", "roundup_power2_divisions:[>:8]",
                    "0 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8");
    check_divisions("2.11", "roundup_power2_divisions:[64:8,256:4,1024:4]",
                    "8 8 8 8 8 8 8 0 4 0 4 0 0 0 0 0");
    check_divisions("2.11", "roundup_power2_divisions:[262144:2]",
                    "2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2");
}

TEST(refuses_and_says_where)
{
    const char *bad[] = {
        "max_split_size_mb",
        "max_split_size_mb:",
        "max_split_size_mb:19",
        "max_split_size_mb:-100",
        "max_split_size_mb:100x",
        "max_split_size_mb:1,,",
        "expandable_segments:true",
        "expandable_segments:",
        "foo:1",
        "backend:cudaMallocAsync",
        "roundup_power2_divisions:3",
        "roundup_power2_divisions:[",
        "roundup_power2_divisions:[3:2]",
        "roundup_power2_divisions:[4:3]",
        "roundup_power2_divisions:[4:2",
        "garbage_collection_threshold:0",
        "garbage_collection_threshold:1",
        "garbage_collection_threshold:nan",
        "per_process_memory_fraction:1.5",
        "large_segment_size_mb:10",
        "max_split_size_mb:100 expandable_segments:True",
        "max_split_size_mb:99999999999999999999999999",
        "0123456789012345678901234567890123456789012345678901234567890123456:1",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!strncmp(refused("2.11", bad[i]), "alloc-conf:", 11));
    CHECK_STR(refused("2.6", "max_split_size_mb:20"),
              "alloc-conf:19: '20': must be at least 21");
}

TEST(rounds_as_round_size_does)
{
    struct alloc_conf c = parsed("2.11", "");

    CHECK_UINT(alloc_conf_round(&c, 1), 512);
    CHECK_UINT(alloc_conf_round(&c, 512), 512);
    CHECK_UINT(alloc_conf_round(&c, 513), 1024);
    CHECK_UINT(alloc_conf_round(&c, 10 * MIB + 1), 10 * MIB + 512);
    c = parsed("2.11", "roundup_power2_divisions:4");
    CHECK_UINT(alloc_conf_round(&c, 1200), 1536);
    CHECK_UINT(alloc_conf_round(&c, 2048), 2048);
    CHECK_UINT(alloc_conf_round(&c, 2049), 2560);
    CHECK_UINT(alloc_conf_round(&c, 1200 * KIB), 1280 * KIB);
    CHECK_UINT(alloc_conf_round(&c, 1024 * KIB), 1024 * KIB);
    CHECK_UINT(alloc_conf_round(&c, 1900 * KIB), 2048 * KIB);
    CHECK_UINT(alloc_conf_round(&c, 100 * GIB), 112 * GIB);
    c = parsed("2.11", "roundup_power2_divisions:1");
    CHECK_UINT(alloc_conf_round(&c, 514 * MIB), 514 * MIB);
}
