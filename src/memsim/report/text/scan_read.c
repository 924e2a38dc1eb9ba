/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/scan_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/text_columns.h"

/* --- the file ------------------------------------------------------------- */

static bool number_take(char **at, int64_t *value)
{
    char *end;

    *value = strtoll(*at, &end, 10);
    bool found = end != *at;
    *at = end;
    return found;
}

static bool most_take(char **at, struct scan_most *most)
{
    int64_t n;

    if (!number_take(at, &n) || !number_take(at, &most->batch) ||
        !number_take(at, &most->sample))
        return false;
    most->n = n > 0 ? (uint64_t)n : 0;
    return true;
}

/* False: LINE is none of scan.py's, or its process was killed in it. */
static bool line_take(char *line, struct scan *scan)
{
    int64_t words[7];
    char *at = line, *end = strchr(line, '\n');

    for (size_t i = 0; i < 7; i++)
        if (!number_take(&at, &words[i]))
            return false;
    if (!end || words[2] < 0 || words[2] >= SCAN_STATES)
        return false;
    *scan = (struct scan){
        .pid = (uint32_t)words[0],
        .loader = (uint32_t)words[1],
        .state = (enum scan_state)words[2],
        .shift = words[3],
        .batches = (uint64_t)words[4],
        .read = (uint64_t)words[5],
        .total = (uint64_t)words[6],
    };
    for (int d = 0; d < PEAK_LAW_DIMENSIONS; d++)
        if (!most_take(&at, &scan->most[d]))
            return false;
    *end = '\0';
    snprintf(scan->lacks, sizeof scan->lacks, "%s", at + (*at == ' '));
    return true;
}

/* The last line of a loader counts. */
static void scan_put(struct result *r, const struct scan *scan)
{
    size_t i = 0;

    while (i < r->scan_count && (r->scans[i].pid != scan->pid ||
                                 r->scans[i].loader != scan->loader))
        i++;
    if (i == r->scan_count) {
        xgrow(&r->scans, i, &r->scan_capacity, sizeof *r->scans);
        r->scan_count++;
    }
    r->scans[i] = *scan;
}

void scan_read(struct result *r, const char *directory)
{
    char *path = xasprintf("%s/" SESSION_SCAN, directory), *line = NULL;
    FILE *file = fopen(path, "re");
    size_t capacity = 0;
    struct scan scan;

    while (file && getline(&line, &capacity, file) > 0)
        if (line_take(line, &scan))
            scan_put(r, &scan);
    free(line);
    if (file)
        fclose(file);
    free(path);
}

/* --- the largest input ---------------------------------------------------- */

/* Whether any loader is one that a model learns of; if not, all may be. */
static bool any_learns(const struct result *r)
{
    for (size_t i = 0; i < r->scan_count; i++)
        if (r->scans[i].state != SCAN_UNUSED)
            return true;
    return false;
}

/* The model's n where the loader's is MOST's; 0: not known. */
static uint64_t size_of(const struct scan *scan, int dimension)
{
    int64_t n = (int64_t)scan->most[dimension].n;

    if (!n || scan->state == SCAN_SAME)
        return (uint64_t)n;
    if (scan->state != SCAN_SHIFTED || dimension != PEAK_LAW_TOKEN)
        return 0;
    return n + scan->shift > 0 ? (uint64_t)(n + scan->shift) : 0;
}

static void scan_add(struct result_wanted *wanted, const struct scan *scan)
{
    if (scan->lacks[0])
        wanted->lacks = "not all samples were read";
    else if (scan->state == SCAN_OTHER)
        wanted->lacks = "the model does not get the batches of its data loader "
                        "as they are";
    for (int d = 0; d < PEAK_LAW_DIMENSIONS; d++)
        if (size_of(scan, d) > wanted->of[d])
            wanted->of[d] = size_of(scan, d);
}

void scan_want(struct result *r)
{
    r->wanted.asked = r->wanted.data = true;
    for (size_t i = 0; i < r->scan_count; i++)
        if (r->scans[i].state != SCAN_UNUSED)
            scan_add(&r->wanted, &r->scans[i]);
    if (!any_learns(r))
        r->wanted.lacks = "no model learned of batches of a data loader of "
                          "PyTorch's";
}

/* --- what is said --------------------------------------------------------- */

/* What N counts in words, and of a sample or of all of a batch. */
static const struct scan_text {
    const char *of, *one;
} scan_texts[] = {
    [PEAK_LAW_TOKEN] = {"tokens", "the longest sample has"},
    [PEAK_LAW_VALUE] = {"values", "the largest sample has"},
    [PEAK_LAW_SAMPLE] = {"samples", "the largest batch has"},
    [PEAK_LAW_BATCH_TOKEN] = {"tokens, padding included",
                              "the largest batch has"},
    [PEAK_LAW_BATCH_VALUE] = {"values, padding included",
                              "the largest batch has"},
};

/* " (sample 17, batch 3)". */
static void place_text(const struct scan_most *most, char *out, size_t size)
{
    char sample[32] = "", batch[48] = "a batch that the first epoch left out";

    if (most->sample >= 0)
        snprintf(sample, sizeof sample, "sample %" PRId64 ", ", most->sample);
    if (most->batch >= 0)
        snprintf(batch, sizeof batch, "batch %" PRId64, most->batch);
    snprintf(out, size, " (%s%s)", sample, batch);
}

static void most_write(const struct scan *scan, int dimension, char *out,
                       size_t size)
{
    const struct scan_most *most = &scan->most[dimension];
    size_t used = strlen(out);
    char place[96];

    if (!most->n || used >= size)
        return;
    place_text(most, place, sizeof place);
    snprintf(out + used, size - used, "; %s %" PRIu64 " %s%s",
             scan_texts[dimension].one, most->n, scan_texts[dimension].of,
             place);
}

static void scan_write(const struct scan *scan, FILE *out)
{
    bool tokens = scan->most[PEAK_LAW_TOKEN].n;
    char text[640];

    snprintf(text, sizeof text, "%" PRIu64 " batches, %" PRIu64 " samples",
             scan->batches, scan->read);
    if (scan->total > scan->read)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 " of %" PRIu64, scan->total);
    most_write(scan, tokens ? PEAK_LAW_TOKEN : PEAK_LAW_VALUE, text,
               sizeof text);
    most_write(scan, tokens ? PEAK_LAW_BATCH_TOKEN : PEAK_LAW_BATCH_VALUE, text,
               sizeof text);
    if (scan->lacks[0])
        snprintf(text + strlen(text), sizeof text - strlen(text), "; %s",
                 scan->lacks);
    text_write_wrapped(out, "  data:", text);
}

void scan_text_write(const struct result *r, FILE *out)
{
    bool learns = any_learns(r);

    for (size_t i = 0; i < r->scan_count; i++)
        if (!learns || r->scans[i].state != SCAN_UNUSED)
            scan_write(&r->scans[i], out);
}

static void most_json_add(cJSON *list, const struct scan *scan, int d)
{
    if (!scan->most[d].n)
        return;
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "dimension", peak_law_dimension_name(
                                                   (enum peak_law_dimension)d));
    json_add_uint(item, "n", scan->most[d].n);
    if (scan->most[d].batch >= 0)
        json_add_uint(item, "batch", (uint64_t)scan->most[d].batch);
    if (scan->most[d].sample >= 0)
        json_add_uint(item, "sample", (uint64_t)scan->most[d].sample);
    cJSON_AddItemToArray(list, item);
}

static cJSON *scan_json_make(const struct scan *scan)
{
    static const char *const states[] = {
        [SCAN_UNUSED] = "unused",
        [SCAN_SAME] = "same",
        [SCAN_SHIFTED] = "shifted",
        [SCAN_OTHER] = "other",
    };
    cJSON *item = cJSON_CreateObject();

    cJSON_AddStringToObject(item, "model", states[scan->state]);
    json_add_uint(item, "batches", scan->batches);
    json_add_uint(item, "samples", scan->read);
    if (scan->total)
        json_add_uint(item, "data_set_samples", scan->total);
    if (scan->lacks[0])
        cJSON_AddStringToObject(item, "lacks", scan->lacks);
    cJSON *list = cJSON_AddArrayToObject(item, "largest");
    for (int d = 0; d < PEAK_LAW_DIMENSIONS; d++)
        most_json_add(list, scan, d);
    return item;
}

void scan_json_add(cJSON *root, const struct result *r)
{
    if (!r->scan_count)
        return;
    cJSON *list = cJSON_AddArrayToObject(root, "data_loaders");
    for (size_t i = 0; i < r->scan_count; i++)
        cJSON_AddItemToArray(list, scan_json_make(&r->scans[i]));
}
