/* SPDX-License-Identifier: Apache-2.0
 * The names are a contract: man/memsim.1, JSON. */
#include <cjson/cJSON.h>

#include "common/base/json_add.h"
#include "memsim/collectives/traffic.h"

/* To the last bit, which cJSON's own printing may lose. */
static cJSON *exact_number(double value)
{
    char digits[32];

    snprintf(digits, sizeof digits, "%.17g", value);
    return cJSON_CreateRaw(digits);
}

static void add_sum(cJSON *to, const struct traffic_sum *sum)
{
    json_add_uint(to, "calls", sum->calls);
    json_add_bytes(to, "bytes", sum->bytes);
    cJSON_AddItemToObject(to, "time_us", exact_number(sum->us));
}

static void add_warning(cJSON *array, const char *text, uint64_t calls)
{
    if (!calls)
        return;
    cJSON *warning = json_add_object(array);
    cJSON_AddStringToObject(warning, "text", text);
    json_add_uint(warning, "calls", calls);
}

static void add_sizes(cJSON *to, const struct traffic_row *row)
{
    cJSON *sizes = cJSON_AddArrayToObject(to, "sizes");

    for (size_t i = 0; i < row->size_count; i++) {
        cJSON *size = json_add_object(sizes);

        json_add_bytes(size, "bytes", row->sizes[i].bytes);
        json_add_uint(size, "calls", row->sizes[i].calls);
        cJSON_AddItemToObject(size, "call_us", exact_number(row->sizes[i].us));
    }
}

static void add_row(cJSON *to, const struct traffic_row *row, bool steps)
{
    cJSON_AddStringToObject(to, "collective", fit_coll_name(row->coll));
    json_add_uint(to, "ranks", row->ranks);
    json_add_uint(to, "nodes", row->nodes);
    json_add_uint(to, "gpus_per_node", row->gpus_per_node);
    cJSON_AddBoolToObject(to, "members_assumed", row->assumed);
    add_sum(to, &row->all);
    if (steps)
        add_sum(cJSON_AddObjectToObject(to, "step"), &row->step);
    add_sizes(to, row);
    if (row->error >= 0)
        cJSON_AddNumberToObject(to, "error_median", row->error);
    cJSON *warnings = cJSON_AddArrayToObject(to, "warnings");
    for (int i = 0; i < COST_NCCL_FLAGS; i++)
        add_warning(warnings, cost_nccl_flag_text(1u << i), row->flagged[i]);
    add_warning(warnings, TRAFFIC_UNPRICED, row->unpriced);
}

static void add_rank(cJSON *to, const struct traffic_rank *r)
{
    json_add_uint(to, "rank", r->rank);
    json_add_uint(to, "process", r->process);
    add_sum(to, &r->all);
    add_sum(cJSON_AddObjectToObject(to, "before_steps"), &r->before);
    if (r->typical) {
        cJSON *step = cJSON_AddObjectToObject(to, "step");

        json_add_uint(step, "index", r->typical - 1);
        add_sum(step, &r->step);
    }
    cJSON *steps = cJSON_AddArrayToObject(to, "steps_time_us");
    for (uint32_t i = 0; i < r->steps; i++)
        cJSON_AddItemToArray(steps, exact_number(r->step_us[i]));
    cJSON *rows = cJSON_AddArrayToObject(to, "kinds");
    for (size_t i = 0; i < r->row_count; i++)
        add_row(json_add_object(rows), &r->rows[i], r->typical);
}

void traffic_json_add(cJSON *root, const struct traffic *traffic)
{
    cJSON *to = cJSON_AddObjectToObject(root, "collectives");

    cJSON_AddStringToObject(to, "cluster", traffic->cluster);
    cJSON_AddStringToObject(to, "about", traffic->about);
    cJSON_AddBoolToObject(to, "measured", traffic->measured);
    json_add_uint(to, "gpus_per_node", traffic->gpus_per_node);
    json_add_uint(to, "world", traffic->world);
    if (traffic->quantile > 0)
        cJSON_AddNumberToObject(to, "quantile", traffic->quantile);
    cJSON *ranks = cJSON_AddArrayToObject(to, "ranks");
    for (size_t i = 0; i < traffic->rank_count; i++)
        add_rank(json_add_object(ranks), &traffic->ranks[i]);
}
