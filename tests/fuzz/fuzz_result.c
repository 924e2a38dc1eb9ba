/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on the reader of reports, and on the comparison of what it takes
 * with itself, with a run of nothing and with a fixed one. */
#include <stdlib.h>
#include <string.h>

#include "memsim/report/json/result_read.h"
#include "memsim/report/text/diff_report.h"
#include "memsim/report/text/time_diff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char fixed[] =
    "{\"schema\":1,\"verdict\":\"fits\",\"exit_status\":0,\"command\":[],"
    "\"gpu\":{\"name\":\"g\",\"device_name\":\"G\",\"memory_bytes\":9},"
    "\"ranks\":[{\"rank\":0,\"devices\":[{\"index\":0,\"capacity_bytes\":9,"
    "\"peak_allocated_bytes\":5,\"peak_reserved_bytes\":6,"
    "\"peak_used_bytes\":7,\"headroom_bytes\":2,\"categories_at_peak\":"
    "{\"activation\":5},\"modules\":[{\"name\":\"Net\",\"bytes_at_peak\":5,"
    "\"own_peak_bytes\":5,\"calls\":1},{\"name\":\"a\",\"parent\":\"Net\","
    "\"bytes_at_peak\":3,\"own_peak_bytes\":3,\"calls\":1}],"
    "\"modules_at_peak\":[{\"name\":\"Net\",\"bytes\":2},"
    "{\"name\":\"a\",\"bytes\":3}]}]}]}";

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void compare(const struct result *before, const struct result *after,
                    FILE *out)
{
    const struct report_style style = {.depth = 100, .top = 1000000};
    struct diff diff;
    struct time_diff time;
    struct err err = {""};

    diff_make(&diff, before, after);
    time_diff_make(&time, before, after);
    struct diff_report r = {
        .diff = &diff, .time = &time, .before = "a", .after = "b"};
    demand(!diff_limit_parse("0", &r.limit, &err));
    if (diff.device_count) {
        diff_report_init(&r);
        diff_report_text(&r, &style, out);
        diff_report_json(&r, out);
        diff_report_fini(&r);
    }
    time_diff_fini(&time);
    diff_fini(&diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    struct result_file file, other;
    struct err err = {""};

    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    /* Not terminated: the reader must keep to SIZE. */
    if (result_read((const char *)data, size, "fuzz.json", &file, &err)) {
        demand(err.text[0] != '\0');
        return 0;
    }
    demand(!result_read(fixed, sizeof fixed - 1, "fixed", &other, &err));
    compare(&file.result, &file.result, nowhere);
    compare(&file.result, &other.result, nowhere);
    compare(&other.result, &file.result, nowhere);
    result_file_fini(&other);
    result_file_fini(&file);
    return 0;
}
