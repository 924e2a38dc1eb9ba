/* SPDX-License-Identifier: Apache-2.0
 * memsim clusters: the fitted ones, as a table, or one in full. */
#include "memsim/cli/cmd.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fits/cluster.h"
#include "common/base/units.h"
#include "memsim/report/json/schema.h"


struct values {
    bool json;
};

static const struct option_row rows[] = {
    {"json", 0, OPTION_FLAG, NULL, offsetof(struct values, json),
     .help = "print JSON"},
    {0},
};

static const struct options options = {
    .command = "memsim clusters",
    .operands = "[NAME|FILE.json]",
    .summary = "Lists the clusters that --cluster accepts. Given one, prints "
               "what was measured\nand the errors of its fit on held-out "
               "data.",
    .rows = rows,
    .wanted = "give at most one cluster",
    .operands_max = 1,
};

/* The least and most nodes that C was measured on; 0: none. */
static void find_nodes(const struct cluster *c, uint32_t *low, uint32_t *high)
{
    *low = *high = 0;
    for (uint32_t i = 0; i < c->fit.family_count; i++) {
        const struct fit_family *f = &c->fit.families[i];
        uint32_t first = f->curves[0].nodes;
        uint32_t last = f->curves[f->curve_count - 1].nodes;

        if (!*low || first < *low)
            *low = first;
        if (last > *high)
            *high = last;
    }
}

static void print_row(const struct cluster *c)
{
    char gpus[16] = "any", nodes[32] = "data sheet";
    uint32_t low, high;

    find_nodes(c, &low, &high);
    if (c->gpus_per_node)
        snprintf(gpus, sizeof gpus, "%" PRIu32, c->gpus_per_node);
    if (high)
        snprintf(nodes, sizeof nodes,
                 low == high ? "%" PRIu32 : "%" PRIu32 " to %" PRIu32, low,
                 high);
    printf("%-18s %-34.34s %9s  %s\n", c->name, c->gpu, gpus, nodes);
}

static void print_table(const struct cluster *list, size_t count)
{
    printf("%-18s %-34s %9s  %s\n", "NAME", "GPU", "GPUS/NODE",
           "NODES MEASURED");
    for (size_t i = 0; i < count; i++)
        print_row(&list[i]);
}

static void print_error(const char *what, double error)
{
    if (error >= 0)
        printf("    %-42s %5.1f%%\n", what, 100 * error);
}

static void print_family(const struct fit_family *f)
{
    char low[16], high[16];

    printf("%s, %" PRIu32 " GPUs a node\n", fit_coll_name(f->coll),
           f->gpus_per_node);
    for (uint32_t i = 0; i < f->curve_count; i++) {
        const struct fit_curve *c = &f->curves[i];

        printf("    %4" PRIu32 " node%s, %s to %s\n", c->nodes,
               c->nodes == 1 ? "" : "s",
               units_format_bytes((uint64_t)c->bytes_min, low, sizeof low),
               units_format_bytes((uint64_t)c->bytes_max, high, sizeof high));
    }
    print_error("median error at a size left out", f->errors.size_median);
    print_error("95th percentile of it", f->errors.size_p95);
    print_error("median at a node count between", f->errors.between_median);
    print_error("median at the next larger node count",
                f->errors.beyond_median);
}

static void print_level(const struct fit_level *l)
{
    const struct fit_sigmoid *p = &l->pieces[l->piece_count - 1];

    printf("%s: up to %.4g GB/s, %.3g us a step\n", l->name,
           p->limit_gbps + p->base_gbps, l->latency_us);
}

static void print_cluster(const struct cluster *c)
{
    printf("%s\n", c->name);
    printf("%s%s%s\n", c->gpu, c->gpu[0] ? "; " : "", c->about);
    for (int i = 0; i < FIT_LEVELS; i++)
        if (c->fit.levels[FIT_CORRECTED][i].known)
            print_level(&c->fit.levels[FIT_CORRECTED][i]);
    if (c->network)
        printf("network: %s\n", c->network->about);
    for (uint32_t i = 0; i < c->fit.family_count; i++)
        print_family(&c->fit.families[i]);
}

static void add_error(cJSON *to, const char *key, double value)
{
    if (value >= 0)
        cJSON_AddNumberToObject(to, key, value);
}

static cJSON *json_family(const struct fit_family *f)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "collective", fit_coll_name(f->coll));
    cJSON_AddNumberToObject(object, "gpus_per_node", f->gpus_per_node);
    cJSON *nodes = cJSON_AddArrayToObject(object, "nodes");
    for (uint32_t i = 0; i < f->curve_count; i++)
        cJSON_AddItemToArray(nodes, cJSON_CreateNumber(f->curves[i].nodes));
    add_error(object, "size_median", f->errors.size_median);
    add_error(object, "size_p95", f->errors.size_p95);
    add_error(object, "between_median", f->errors.between_median);
    add_error(object, "beyond_median", f->errors.beyond_median);
    return object;
}

static cJSON *json_cluster(const struct cluster *c)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "name", c->name);
    cJSON_AddStringToObject(object, "gpu", c->gpu);
    cJSON_AddStringToObject(object, "about", c->about);
    cJSON_AddBoolToObject(object, "measured", c->measured);
    if (c->network)
        cJSON_AddStringToObject(object, "network", c->network->about);
    cJSON *families = cJSON_AddArrayToObject(object, "families");
    for (uint32_t i = 0; i < c->fit.family_count; i++)
        cJSON_AddItemToArray(families, json_family(&c->fit.families[i]));
    return object;
}

static int list_all(bool json)
{
    struct err err = {""};
    struct cluster *list;
    size_t count;

    if (cluster_list(&list, &count, &err))
        return cmd_fail(CMD_FAILED, &err);
    cJSON *array = json ? cJSON_CreateArray() : NULL;
    for (size_t i = 0; i < count && json; i++)
        cJSON_AddItemToArray(array, json_cluster(&list[i]));
    if (json)
        schema_print_as("clusters", array, stdout);
    else
        print_table(list, count);
    for (size_t i = 0; i < count; i++)
        cluster_fini(&list[i]);
    free(list);
    return CMD_OK;
}

static int show_one(const char *name, bool json)
{
    struct err err = {""};
    struct cluster c;

    if (cluster_load(name, &c, &err))
        return cmd_fail(CMD_FAILED, &err);
    if (json)
        schema_print_as("cluster", json_cluster(&c), stdout);
    else
        print_cluster(&c);
    cluster_fini(&c);
    return CMD_OK;
}

int cmd_clusters(int argc, char **argv)
{
    struct values values = {0};
    struct operands operands;
    int status = cmd_start(&options, argc, argv, &values, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (operands.count == 1)
        return show_one(operands.values[0], values.json);
    return list_all(values.json);
}
