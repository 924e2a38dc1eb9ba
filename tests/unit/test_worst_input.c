/* SPDX-License-Identifier: Apache-2.0
 * The largest input: as given, and as a data loader has it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "common/trace/session.h"
#include "memsim/report/text/law_report.h"
#include "memsim/report/text/scan_read.h"
#include "memsim/run/routing.h"

#define MOST " 40 3 7 40 3 7 8 0 -1 320 3 -1 320 3 -1"

/* R gets what --scan-data left as TEXT. */
static void read_text(struct result *r, const char *text)
{
    char directory[] = "/tmp/memsim-test-XXXXXX", path[64];

    *r = (struct result){.verdict = VERDICT_FITS};
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/" SESSION_SCAN, directory);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    scan_read(r, directory);
    unlink(path);
    rmdir(directory);
    scan_want(r);
}

TEST(the_last_line_of_a_loader_counts)
{
    struct result r;

    read_text(&r, "9 0 0 0 5 40 40" MOST " \n9 0 1 0 5 40 40" MOST " \n"
                  "9 1 0 0 1 8 8 99 0 0 99 0 0 8 0 0 792 0 0 792 0 0 \n");
    CHECK_UINT(r.scan_count, 2);
    CHECK_UINT(r.scans[0].state, SCAN_SAME);
    CHECK_UINT(r.scans[0].most[PEAK_LAW_TOKEN].sample, 7);
    CHECK_UINT(r.wanted.of[PEAK_LAW_TOKEN], 40); /* the second is not used */
    CHECK(!r.wanted.lacks);
    free(r.scans);
}

TEST(tokens_that_the_model_gets_less_are_taken_off)
{
    struct result r;

    read_text(&r, "9 0 2 -1 5 40 40" MOST " \n");
    CHECK_UINT(r.wanted.of[PEAK_LAW_TOKEN], 39);
    CHECK_UINT(r.wanted.of[PEAK_LAW_VALUE], 0);
    free(r.scans);
}

TEST(what_was_not_read_lacks)
{
    static const char *const texts[] = {
        "", "no line\n", "9 0 1 0 5 40", "9 0 7 0 5 40 40" MOST " \n",
        "9 0 1 0 5 40 40" MOST, /* its writer was killed */
        "9 0 0 0 5 40 40" MOST " \n", "9 0 3 0 5 40 40" MOST " \n",
        "9 0 1 0 5 40 40" MOST " ValueError: no such sample\n"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct result r;
        read_text(&r, texts[i]);
        CHECK(r.wanted.asked && r.wanted.lacks);
        free(r.scans);
    }
}

TEST(the_largest_input_is_a_count_and_maybe_a_dimension)
{
    static const char *const bad[] = {"",    "0",      "-3",    "4k",
                                      "x=4", "token=", "=4",    "token=0",
                                      "1.5", " 7",     "99999999999999999999"};
    struct result_wanted wanted;
    struct err err;

    CHECK_UINT(law_wanted_parse(NULL, &wanted, &err), 0);
    CHECK(!wanted.asked);
    CHECK_UINT(law_wanted_parse("4096", &wanted, &err), 0);
    CHECK_UINT(wanted.of[PEAK_LAW_BATCH_VALUE], 4096);
    CHECK_UINT(law_wanted_parse("sample=64", &wanted, &err), 0);
    CHECK_UINT(wanted.of[PEAK_LAW_SAMPLE], 64);
    CHECK_UINT(wanted.of[PEAK_LAW_TOKEN], 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(law_wanted_parse(bad[i], &wanted, &err));
}

TEST(a_routing_is_a_word_or_a_file)
{
    static const char *const bad[] = {"zipf:",   "zipf:0", "zipf:-1", "power",
                                      "power:x", "zipf:1e9", "/dev/null",
                                      "/", "/nowhere/shares"};
    static const struct {
        const char *text, *value;
    } good[] = {{"even", "even"}, {"zipf", "zipf:1"}, {"power:1.2", "power:1.2"}};
    struct err err;
    char *value;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_UINT(routing_parse(good[i].text, &value, &err), 0);
        CHECK_STR(value, good[i].value);
        free(value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(routing_parse(bad[i], &value, &err));
        CHECK(!value && strstr(err.text, "--routing"));
    }
}
