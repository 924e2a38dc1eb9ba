/* SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>

#include "memsim/report/json/attribute_json.h"
#include "memsim/report/json/replay_json.h"
#include "memsim/report/page/history_page.h"
#include "memsim/report/page/report_html.h"
#include "memsim/report/text/replay_report.h"
#include "memsim/result/replay_history.h"

/* What the page draws of REC on its device I; notes what it cannot. */
static void add_history(cJSON *root, cJSON *device, const struct recording *rec,
                        unsigned i)
{
    struct err err = {""};
    struct attribution *a = replay_history_make(rec, i, &err);

    if (!a) {
        cJSON_AddItemToArray(
            cJSON_GetObjectItemCaseSensitive(root, "notes"),
            cJSON_CreateString(err.text));
        return;
    }
    attribute_json_add_memory(device, a);
    history_page_add(device, a);
    attribution_destroy(a);
}

/* The ranks are those of the recordings that are used, in order, and the
 * devices those of each that are. */
static void add_histories(cJSON *root, const struct replay_report *r)
{
    const cJSON *rank = cJSON_GetObjectItemCaseSensitive(root, "ranks")->child;

    for (size_t i = 0; rank && i < r->count; i++) {
        const struct whatif *w = &r->recordings[i].whatif;
        if (!w->row_count)
            continue;
        cJSON *device =
            cJSON_GetObjectItemCaseSensitive(rank, "devices")->child;
        for (unsigned d = 0; d < REPLAY_DEVICES; d++) {
            if (!w->rows[0].result.devices[d].used)
                continue;
            add_history(root, device, &r->recordings[i], d);
            device = device->next;
        }
        rank = rank->next;
    }
}

static void html_write(const void *report, const struct report_style *style,
                       FILE *out)
{
    const struct replay_report *r = report;
    cJSON *root = replay_json_make(r);

    (void)style;
    add_histories(root, r);
    report_html_put(root, &r->result, out);
    cJSON_Delete(root);
}

const struct report_ops replay_report_html = {.write = html_write};
