/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/page/report_html.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "common/base/text_clean.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/json/report_json.h"
#include "memsim/report/json/schema.h"
#include "memsim/report/page/history_page.h"
#include "memsim/report/page/time_page.h"
#include "memsim/report/report.h"
#include "memsim/report/text/time_report.h"
#include "memsim/time/timing.h"

#define SLOT       "@RESULT@"
#define STEP_BYTES (12 * MIB) /* of timelines of steps */
#define DATA_BYTES (24 * MIB) /* of lists: what a browser reads in a second */

/* What tools/html-page made; empty where it lacked a library. */
__asm__(".pushsection .rodata\n"
        ".global report_html_page\n"
        ".hidden report_html_page\n"
        "report_html_page: .incbin \"" REPORT_HTML_PAGE "\"\n"
        ".byte 0\n"
        ".popsection");

extern const char report_html_page[]; /* ends with a NUL */

int report_html_check(struct err *err)
{
    if (*report_html_page)
        return 0;
    return err_set(err,
                   "--html: this memsim was built without the page's charting "
                   "libraries; install libjs-chart.js and node-d3-hierarchy "
                   "(apt-get install), and build it again");
}

/* A device's lists, what one wants to see first first. */
static const char *const lists[] = {
    "timeline", "modules_at_peak", "modules",
    "phases",   "things_at_peak",  "segments_at_peak",
    "history",
};

/* Keeps the member NAME of OBJECT, as text, if there is ROOM for it, or puts
 * its name and size into "left_out". */
static void list_bound(cJSON *object, const char *name, size_t *room)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, name);
    char *text = list ? cJSON_PrintUnformatted(list) : NULL;
    size_t length = text ? strlen(text) : 0;

    if (length <= *room) {
        *room -= length;
        if (text)
            cJSON_ReplaceItemInObjectCaseSensitive(object, name,
                                                   cJSON_CreateRaw(text));
    } else {
        cJSON *left_out = cJSON_GetObjectItemCaseSensitive(object, "left_out");
        if (!left_out)
            left_out = cJSON_AddObjectToObject(object, "left_out");
        cJSON_AddNumberToObject(left_out, name, (double)length);
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    }
    free(text);
}

struct card {
    const struct result_device *device;
    bool slowest; /* of the rank whose step is the job's */
    cJSON *object;
};

/* Out of memory first, then the slowest rank's, then the fullest: the page
 * opens on the first (firstEntry in main.js). */
static int card_compare(const void *x, const void *y)
{
    const struct result_device *a = ((const struct card *)x)->device;
    const struct result_device *b = ((const struct card *)y)->device;

    if (!a->oom_count != !b->oom_count)
        return a->oom_count ? -1 : 1;
    if (((const struct card *)x)->slowest != ((const struct card *)y)->slowest)
        return ((const struct card *)x)->slowest ? -1 : 1;
    double p = (double)a->peak_used_bytes / (double)a->capacity_bytes;
    double q = (double)b->peak_used_bytes / (double)b->capacity_bytes;
    return p > q ? -1 : p < q;
}

static struct card *cards_find(const cJSON *root, const struct result *r,
                               size_t *count)
{
    const cJSON *rank = cJSON_GetObjectItemCaseSensitive(root, "ranks")->child;
    const struct result_rank *slowest = time_slowest_rank(r);
    struct card *cards = NULL;
    size_t capacity = 0;

    *count = 0;
    for (size_t i = 0; i < r->rank_count; i++, rank = rank->next) {
        cJSON *object =
            cJSON_GetObjectItemCaseSensitive(rank, "devices")->child;
        for (size_t j = 0; j < r->ranks[i].device_count; j++) {
            xgrow(&cards, *count, &capacity, sizeof *cards);
            cards[(*count)++] = (struct card){&r->ranks[i].devices[j],
                                              &r->ranks[i] == slowest, object};
            object = object->next;
        }
    }
    return cards;
}

/* Of a rank's steps, which may be very many, the page shows one. */
static void step_keep(cJSON *rank, const struct timing *timing)
{
    cJSON *steps = cJSON_GetObjectItemCaseSensitive(rank, "steps");
    cJSON *step =
        steps && timing_step_ns(timing)
            ? cJSON_DetachItemFromArray(steps, (int)timing->typical)
            : NULL;

    if (!step)
        return;
    cJSON *one = cJSON_CreateArray();
    cJSON_AddItemToArray(one, step);
    cJSON_ReplaceItemInObjectCaseSensitive(rank, "steps", one);
}

/* The timelines of the ranks' steps: the slowest one's goes last. */
static void steps_bound(cJSON *root, const struct result *r)
{
    cJSON *rank, *ranks = cJSON_GetObjectItemCaseSensitive(root, "ranks");
    const struct result_rank *slowest = time_slowest_rank(r);
    int first = slowest ? (int)(slowest - r->ranks) : 0;
    cJSON *kept = cJSON_GetArrayItem(ranks, first);
    size_t room = STEP_BYTES;

    for (size_t i = 0; i < r->rank_count; i++)
        step_keep(cJSON_GetArrayItem(ranks, (int)i), r->ranks[i].timing);
    if (kept)
        list_bound(kept, "step_timeline", &room);
    cJSON_ArrayForEach(rank, ranks)
        if (rank != kept)
            list_bound(rank, "step_timeline", &room);
}

static void root_bound(cJSON *root, const struct result *r, struct card *cards,
                       size_t count)
{
    const cJSON *recording,
        *replay = cJSON_GetObjectItemCaseSensitive(root, "replay");
    size_t room = DATA_BYTES;

    steps_bound(root, r);
    if (count)
        qsort(cards, count, sizeof *cards, card_compare);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof lists / sizeof *lists; j++)
            list_bound(cards[i].object, lists[j], &room);
    cJSON_ArrayForEach(recording, replay)
        list_bound(cJSON_GetObjectItemCaseSensitive(recording, "fragmentation"),
                   "segments", &room);
    list_bound(root, "collectives", &room);
}

/* JSON has these only within strings. Written as escapes they can neither end
 * the element that the text stands in, nor a line of a script. */
static void put_escaped(const char *text, FILE *out)
{
    for (;;) {
        size_t plain = strcspn(text, "<>&\xe2");
        fwrite(text, 1, plain, out);
        text += plain;
        if (!*text)
            return;
        if (text_begins(text, "\u2028") || text_begins(text, "\u2029")) {
            fprintf(out, "\\u20%02x", (unsigned char)text[2] - 0x80);
            text += 3;
        } else if (*text == '\xe2') {
            fputc(*text++, out);
        } else {
            fprintf(out, "\\u%04x", (unsigned)*text++);
        }
    }
}

void report_html_put(cJSON *root, const struct result *result, FILE *out)
{
    const char *slot = strstr(report_html_page, SLOT);

    size_t count;
    struct card *cards = cards_find(root, result, &count);

    time_page_add(root, result);
    for (size_t i = 0; i < count; i++)
        history_page_add(cards[i].object, cards[i].device->attribution);
    schema_assert("report", root);
    root_bound(root, result, cards, count);
    free(cards);
    char *text = cJSON_PrintUnformatted(root);
    if (text && slot) {
        text_make_utf8(text);
        fwrite(report_html_page, 1, (size_t)(slot - report_html_page), out);
        put_escaped(text, out);
        fputs(slot + sizeof SLOT - 1, out);
    }
    free(text);
}

static void html_write(const void *result, const struct report_style *style,
                       FILE *out)
{
    cJSON *root = report_json_make(result);

    (void)style;
    report_html_put(root, result, out);
    cJSON_Delete(root);
}

const struct report_ops report_html = {.write = html_write};
