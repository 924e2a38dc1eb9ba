/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/law_report.h"

#include <inttypes.h>

#include "common/base/json_add.h"
#include "common/base/status.h"
#include "common/base/units.h"
#include "memsim/attribution/attribute.h"
#include "memsim/report/text_columns.h"

#define SIZE_LENGTH 16

/* NULL: nothing is known of D's peak with an input of another size. */
static const struct peak_law *law_of(const struct result_device *d)
{
    return d->attribution && (d->attribution->law.degree || d->input.known)
               ? &d->attribution->law
               : NULL;
}

static uint64_t allocated_at(const struct result_device *d, uint64_t length)
{
    return d->input.known ? d->input.allocated_bytes
                          : peak_law_at(&d->attribution->law, length);
}

/* Used memory: allocated by the law, and beside it as much as at the peak. */
static uint64_t used_at(const struct result_device *d, uint64_t length)
{
    uint64_t beside = d->peak_used_bytes > d->peak_allocated_bytes
                          ? d->peak_used_bytes - d->peak_allocated_bytes
                          : 0;

    return d->input.known ? d->input.used_bytes
                          : peak_law_at(&d->attribution->law, length) + beside;
}

bool law_is_short(const struct result_device *d, uint64_t length)
{
    if (d->input.known)
        return !d->input.fits;
    return law_of(d) && length && used_at(d, length) > d->capacity_bytes;
}

/* What was run fits, but not what will be: no "fits" without a status. */
static void tell_short(struct result *result)
{
    char text[160];

    if (result->verdict != VERDICT_FITS && result->verdict != VERDICT_GROWS &&
        result->verdict != VERDICT_OVER_LIMIT)
        return;
    result->exit_status = CMD_RUN_GROWS;
    snprintf(text, sizeof text,
             "the longest sample (--input-max %" PRIu64 ") does not fit: the "
             "job will run out of memory",
             result->input_max);
    result_note(result, text);
}

void law_judge(struct result *result)
{
    bool known = false, short_of = false;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        known |= law_of(w.device) != NULL;
        short_of |= law_is_short(w.device, result->input_max);
    }
    if (short_of)
        tell_short(result);
    if (result->input_max && !known)
        result_note(result,
                    "--input-max: what the longest sample needs is not known: "
                    "that takes steps with as many samples, of three lengths "
                    "or more, whose peaks follow a line, or of four and a "
                    "parabola");
}

/* At the longest sample each token more takes so much. */
static double token_bytes(const struct peak_law *law, uint64_t length)
{
    return law->linear + 2 * law->square * (double)length;
}

static const char *dimension_text(const struct peak_law *law)
{
    static const char *const texts[] = {
        [PEAK_LAW_TOKEN] = "token of the longest sample",
        [PEAK_LAW_VALUE] = "value of the largest sample's input",
        [PEAK_LAW_SAMPLE] = "sample of the largest step",
    };

    return texts[law->dimension];
}

/* " of 8 samples"; "": their number is what differs. */
static const char *samples_text(const struct peak_law *law, char *out,
                                size_t size)
{
    *out = '\0';
    if (law->samples)
        snprintf(out, size, " of %" PRIu64 " samples", law->samples);
    return out;
}

void law_text_write(const struct result_device *d, uint64_t length, FILE *out)
{
    const struct peak_law *law = law_of(d);
    char each[SIZE_LENGTH], peak[SIZE_LENGTH], samples[48], text[320];
    char rises[128] = "";

    if (!law)
        return;
    uint64_t at = length ? length : law->longest;
    double bytes = token_bytes(law, at);
    units_format_bytes(bytes > 0 ? (uint64_t)bytes : 0, each, sizeof each);
    units_format_bytes(allocated_at(d, at), peak, sizeof peak);
    if (law->degree)
        snprintf(rises, sizeof rises, "%s for each %s%s, ", each,
                 dimension_text(law),
                 law->degree > 1 ? " there, with its square" : "");
    snprintf(text, sizeof text,
             "the peak of a step is %s%s at %" PRIu64
             "%s%s (%u steps%s, %" PRIu64 " to %" PRIu64 " %ss)",
             rises, peak, at,
             length ? "" : ", the most that were recorded",
             law_is_short(d, at) ? ", which does not fit" : "", law->steps,
             samples_text(law, samples, sizeof samples), law->shortest,
             law->longest, peak_law_dimension_name(law->dimension));
    text_write_wrapped(out, "  input:", text);
}

void law_json_add(cJSON *device, const struct result_device *d, uint64_t length)
{
    const struct peak_law *law = law_of(d);

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
    if (!length)
        return;
    json_add_uint(item, "input_max", length);
    json_add_bytes(item, "peak_allocated_bytes", allocated_at(d, length));
    json_add_bytes(item, "peak_used_bytes", used_at(d, length));
    cJSON_AddBoolToObject(item, "fits", !law_is_short(d, length));
    cJSON_AddBoolToObject(item, "replayed", d->input.known);
}
