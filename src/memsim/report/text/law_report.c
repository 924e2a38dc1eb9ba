/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/law_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/status.h"
#include "common/base/units.h"
#include "memsim/attribution/attribute.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/result/result_verdict.h"

#define SIZE_LENGTH 16

/* Digits alone. Returns 0 or -1. */
static int count_parse(const char *text, uint64_t *n)
{
    char *end;

    errno = 0;
    *n = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *n ? 0 : -1;
}

int law_wanted_parse(const char *text, struct result_wanted *wanted,
                     struct err *err)
{
    const char *equals = text ? strchr(text, '=') : NULL;
    const char *number = equals ? equals + 1 : text;
    enum peak_law_dimension only = PEAK_LAW_DIMENSIONS;
    uint64_t n;

    *wanted = (struct result_wanted){.asked = false};
    if (!text)
        return 0;
    if (equals)
        only = peak_law_dimension_find(text, (size_t)(equals - text));
    if (equals && only == PEAK_LAW_DIMENSIONS)
        return err_set(err,
                       "--input-max: '%.*s' is no dimension; one of token, "
                       "value, sample, batch-token, batch-value",
                       (int)(equals - text), text);
    if (count_parse(number, &n))
        return err_set(err, "--input-max: '%s' is no count; give one as 4096",
                       number);
    wanted->asked = true;
    for (int d = 0; d < PEAK_LAW_DIMENSIONS; d++)
        if (only == PEAK_LAW_DIMENSIONS || d == (int)only)
            wanted->of[d] = n;
    return 0;
}

uint64_t law_wanted_size(const struct result_wanted *wanted,
                         const struct result_device *d)
{
    return wanted->asked && d->attribution
               ? wanted->of[d->attribution->law.dimension]
               : 0;
}

/* Whether a step with an input of N or more was recorded. */
static bool is_recorded(const struct result_device *d, uint64_t n)
{
    return n && d->attribution && d->attribution->law.steps &&
           n <= d->attribution->law.longest;
}

/* NULL: nothing is known of D's peak with an input of N, or, where that is 0,
 * of another size than the recorded ones. */
static const struct peak_law *law_of(const struct result_device *d, uint64_t n)
{
    return d->attribution && (d->attribution->law.degree || d->input.known ||
                              is_recorded(d, n))
               ? &d->attribution->law
               : NULL;
}

static uint64_t allocated_at(const struct result_device *d, uint64_t n)
{
    if (is_recorded(d, n))
        return d->peak_allocated_bytes;
    return d->input.known ? d->input.allocated_bytes
                          : peak_law_at(&d->attribution->law, n);
}

/* Used memory: allocated by the law, and beside it as much as at the peak. */
static uint64_t used_at(const struct result_device *d, uint64_t n)
{
    uint64_t beside = d->peak_used_bytes > d->peak_allocated_bytes
                          ? d->peak_used_bytes - d->peak_allocated_bytes
                          : 0;

    if (d->input.known && !is_recorded(d, n))
        return d->input.used_bytes;
    return allocated_at(d, n) + beside;
}

/* Whether an input of N does not fit on D. */
static bool is_short(const struct result_device *d, uint64_t n)
{
    if (is_recorded(d, n))
        return false;
    if (d->input.known)
        return !d->input.fits;
    return law_of(d, n) && n && used_at(d, n) > d->capacity_bytes;
}

static bool fits_so_far(const struct result *result)
{
    return result->verdict == VERDICT_FITS ||
           result->verdict == VERDICT_GROWS ||
           result->verdict == VERDICT_OVER_LIMIT;
}

/* What was run fits, but not what will be. */
static void judge_short(struct result *result)
{
    if (!fits_so_far(result))
        return;
    result->verdict = VERDICT_INPUT;
    result->exit_status = CMD_RUN_GROWS;
    result_note(result, "the largest input does not fit: the job will run out "
                        "of memory when it comes");
}

/* WHY: NULL, or why a larger input may come. */
static void judge_unknown(struct result *result, const char *why)
{
    if (fits_so_far(result))
        result_verdict_unknown(result,
                               "what the largest input needs is not known");
    if (why) {
        result_note(result, "what the largest input needs is not known: %s",
                    why);
        return;
    }
    result_note(result,
                "what the largest input needs is not known: that takes steps "
                "with inputs of three sizes or more, whose peaks follow a "
                "line, or of four and a parabola, and its size in what they "
                "differ in");
}

void law_judge(struct result *result)
{
    bool unknown = false, short_of = false, any = false;

    if (!result->wanted.asked)
        return;
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        uint64_t n = law_wanted_size(&result->wanted, w.device);
        any |= w.device->peak_allocated_bytes != 0;
        if (w.device->peak_allocated_bytes)
            unknown |= !n || !law_of(w.device, n);
        short_of |= is_short(w.device, n);
    }
    if (short_of)
        judge_short(result);
    else if (result->wanted.lacks || unknown || !any)
        judge_unknown(result, result->wanted.lacks);
}

/* At the longest sample each token more takes so much. */
static double token_bytes(const struct peak_law *law, uint64_t length)
{
    return law->linear + 2 * law->square * (double)length;
}

static const struct dimension_text {
    const char *one, *many;
} dimension_texts[] = {
    [PEAK_LAW_TOKEN] = {"token of the longest sample", "tokens"},
    [PEAK_LAW_VALUE] = {"value of the largest sample's input", "values"},
    [PEAK_LAW_SAMPLE] = {"sample of the largest step", "samples"},
    [PEAK_LAW_BATCH_TOKEN] = {"token of the largest batch, padding included",
                              "tokens in all"},
    [PEAK_LAW_BATCH_VALUE] = {"value of the largest batch, padding included",
                              "values in all"},
};

/* " of 8 samples"; "": their number differs, or is one. */
static const char *samples_text(const struct peak_law *law, char *out,
                                size_t size)
{
    *out = '\0';
    if (law->samples > 1)
        snprintf(out, size, " of %" PRIu64 " samples", law->samples);
    return out;
}

/* "1.00 MiB for each token ..., "; "": there is no law. */
static void rises_text(const struct peak_law *law, uint64_t n, char *out,
                       size_t size)
{
    double bytes = token_bytes(law, n);
    char each[SIZE_LENGTH];

    *out = '\0';
    units_format_bytes(bytes > 0 ? (uint64_t)bytes : 0, each, sizeof each);
    if (law->degree)
        snprintf(out, size, "%s for each %s%s, ", each,
                 dimension_texts[law->dimension].one,
                 law->degree > 1 ? " there, with its square" : "");
}

void law_text_write(const struct result_device *d,
                    const struct result_wanted *wanted, FILE *out)
{
    uint64_t n = law_wanted_size(wanted, d);
    const struct peak_law *law = law_of(d, n);
    char peak[SIZE_LENGTH], samples[48], text[384], rises[128];

    if (!law)
        return;
    uint64_t at = n ? n : law->longest;
    const char *many = dimension_texts[law->dimension].many;
    rises_text(law, at, rises, sizeof rises);
    units_format_bytes(allocated_at(d, n ? n : at), peak, sizeof peak);
    snprintf(text, sizeof text,
             "the peak of a step is %s%s at %" PRIu64
             "%s%s (%u steps%s, %" PRIu64 " to %" PRIu64 " %s)",
             rises, peak, at, n ? "" : ", the most that were recorded",
             is_short(d, n) ? ", which does not fit" : "", law->steps,
             samples_text(law, samples, sizeof samples), law->shortest,
             law->longest, many);
    text_write_wrapped(out, "  input:", text);
}

void law_json_add(cJSON *device, const struct result_device *d,
                  const struct result_wanted *wanted)
{
    uint64_t n = law_wanted_size(wanted, d);
    const struct peak_law *law = law_of(d, n);

    if (!law)
        return;
    cJSON *item = cJSON_AddObjectToObject(device, "input_law");
    json_add_uint(item, "degree", law->degree);
    cJSON_AddStringToObject(item, "dimension",
                            peak_law_dimension_name(law->dimension));
    cJSON_AddNumberToObject(item, "constant_bytes", law->constant);
    cJSON_AddNumberToObject(item, "token_bytes", law->linear);
    cJSON_AddNumberToObject(item, "square_bytes", law->square);
    if (law->samples)
        json_add_uint(item, "samples", law->samples);
    json_add_uint(item, "shortest", law->shortest);
    json_add_uint(item, "longest", law->longest);
    if (!n)
        return;
    json_add_uint(item, "input_max", n);
    json_add_bytes(item, "peak_allocated_bytes", allocated_at(d, n));
    json_add_bytes(item, "peak_used_bytes", used_at(d, n));
    cJSON_AddBoolToObject(item, "fits", !is_short(d, n));
    cJSON_AddBoolToObject(item, "replayed", d->input.known);
}
