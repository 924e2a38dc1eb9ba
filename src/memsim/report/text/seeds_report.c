/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/seeds_report.h"

#include "common/base/json_add.h"
#include "common/base/status.h"
#include "common/base/units.h"
#include "memsim/report/text/text_columns.h"

#define SIZE_LENGTH 24

static const char *peak_text(uint64_t bytes, char *out, size_t size)
{
    if (bytes == UINT64_MAX)
        return "out of memory";
    return units_format_bytes(bytes, out, size);
}

void seeds_text_write(const struct result *r, FILE *out)
{
    const struct result_seeds *s = r->seeds;
    char median[SIZE_LENGTH], high[SIZE_LENGTH], most[SIZE_LENGTH], text[320];

    if (!s)
        return;
    snprintf(text, sizeof text,
             "%s, %u seeds: peak used %s in the median, %s at the 95th "
             "percentile, %s at most; %u ran out of memory",
             s->routing, s->count,
             peak_text(s->median_bytes, median, sizeof median),
             peak_text(s->high_bytes, high, sizeof high),
             peak_text(s->most_bytes, most, sizeof most), s->short_of);
    text_write_wrapped(out, "  routing:", text);
}

static void peak_json_add(cJSON *item, const char *name, uint64_t bytes)
{
    if (bytes != UINT64_MAX)
        json_add_bytes(item, name, bytes);
}

void seeds_json_add(cJSON *root, const struct result *r)
{
    const struct result_seeds *s = r->seeds;

    if (!s)
        return;
    cJSON *item = cJSON_AddObjectToObject(root, "routing");
    cJSON_AddStringToObject(item, "distribution", s->routing);
    json_add_uint(item, "first_seed", s->first);
    json_add_uint(item, "seeds", s->count);
    json_add_uint(item, "out_of_memory", s->short_of);
    peak_json_add(item, "peak_used_median_bytes", s->median_bytes);
    peak_json_add(item, "peak_used_p95_bytes", s->high_bytes);
    peak_json_add(item, "peak_used_most_bytes", s->most_bytes);
    cJSON_AddBoolToObject(item, "fits", s->fits);
}

void seeds_judge(struct result *r)
{
    if (!r->seeds || r->seeds->fits ||
        (r->verdict != VERDICT_FITS && r->verdict != VERDICT_GROWS &&
         r->verdict != VERDICT_OVER_LIMIT))
        return;
    r->verdict = VERDICT_INPUT;
    r->exit_status = CMD_RUN_GROWS;
    result_note(r,
                "%u of %u seeds of --routing ran out of memory: the job does "
                "not fit at the 95th percentile",
                r->seeds->short_of, r->seeds->count);
}
