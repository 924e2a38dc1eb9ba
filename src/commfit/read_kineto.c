/* SPDX-License-Identifier: Apache-2.0
 * PyTorch writes what a collective moved beside its kernel (since 2.2), or on
 * the record_param_comms operator that shares the kernel's "External id"
 * (torch/csrc/distributed/c10d/ParamCommsUtils.hpp; kineto's
 * output_json.cpp). */
#include "commfit/read_kineto.h"
#include "common/base/json_text.h"
#include "common/base/xmalloc.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names in both spellings: c10d's OpType and the old free text. */
static const struct {
    const char *name;
    enum fit_coll coll;
} names[] = {
    {"allreduce", FIT_ALL_REDUCE},
    {"allreduce_coalesced", FIT_ALL_REDUCE},
    {"_allgather_base", FIT_ALL_GATHER},
    {"allgather", FIT_ALL_GATHER},
    {"all_gather", FIT_ALL_GATHER},
    {"allgather_into_tensor_coalesced", FIT_ALL_GATHER},
    {"_reduce_scatter_base", FIT_REDUCE_SCATTER},
    {"reduce_scatter", FIT_REDUCE_SCATTER},
    {"reduce_scatter_tensor_coalesced", FIT_REDUCE_SCATTER},
    {"broadcast", FIT_BROADCAST},
    {"_broadcast_oop", FIT_BROADCAST},
    {"reduce", FIT_REDUCE},
    {"_reduce_oop", FIT_REDUCE},
    {"all_to_all", FIT_ALLTOALL},
    {"all_to_allv", FIT_ALLTOALL},
    {"alltoall_base", FIT_ALLTOALL},
    {"gather", FIT_GATHER},
    {"scatter", FIT_SCATTER},
};

static const struct {
    const char *name;
    unsigned bytes;
} types[] = {
    {"Float", 4}, {"BFloat16", 2}, {"Half", 2},          {"Double", 8},
    {"Long", 8},  {"Int", 4},      {"Short", 2},         {"Byte", 1},
    {"Char", 1},  {"Bool", 1},     {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
};

struct comm {
    double id; /* External id */
    struct bench_row row;
};

struct comms {
    struct comm *items;
    size_t count, capacity;
};

/* Kineto writes numbers as numbers or, in some versions, as text. */
static double number_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (cJSON_IsString(item))
        return strtod(item->valuestring, NULL);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static bool find_name(const char *name, enum fit_coll *coll)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i].name)) {
            *coll = names[i].coll;
            return true;
        }
    return false;
}

unsigned kineto_type_bytes(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i].name))
            return types[i].bytes;
    return 0;
}

uint32_t kineto_count_nodes(const char *ranks, uint32_t size,
                            uint32_t node_gpus)
{
    uint32_t nodes = 0, listed = 0;
    long last = -1;
    char *end;

    for (const char *p = ranks + strspn(ranks, "["); *p; p = end) {
        p += strspn(p, ", ");
        long rank = strtol(p, &end, 10);
        if (end == p)
            break;
        nodes += rank / node_gpus != last;
        last = rank / node_gpus;
        listed++;
    }
    return listed == size ? nodes : (size + node_gpus - 1) / node_gpus;
}

/* What ARGS say of a collective. Returns false where they say nothing, or not
 * enough. */
static bool read_args(const cJSON *args, uint32_t node_gpus,
                      struct bench_row *row)
{
    double in = number_of(args, "In msg nelems");
    double out = number_of(args, "Out msg nelems");
    double size = number_of(args, "Group size");
    double bytes =
        fmax(in, out) * kineto_type_bytes(json_text_of(args, "dtype"));

    if (!find_name(json_text_of(args, "Collective name"), &row->coll) ||
        !(bytes >= 1 && bytes < 0x1p50) || !(size >= 2 && size < 0x1p20))
        return false;
    row->nodes =
        kineto_count_nodes(json_text_of(args, "Process Group Ranks"),
                           (uint32_t)size, node_gpus);
    if ((uint32_t)size % row->nodes)
        return false;
    row->gpus = (uint32_t)size / row->nodes;
    row->bytes = (uint64_t)bytes;
    row->by_rank = true;
    row->in_place = row->coll == FIT_ALL_REDUCE; /* as c10d calls it */
    return true;
}

static int compare_comms(const void *a, const void *b)
{
    double x = ((const struct comm *)a)->id, y = ((const struct comm *)b)->id;

    return (x > y) - (x < y);
}

static void collect_operators(const cJSON *events, uint32_t node_gpus,
                              struct comms *comms)
{
    const cJSON *event;
    struct comm comm;

    cJSON_ArrayForEach(event, events)
    {
        const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");

        if (strcmp(json_text_of(event, "cat"), "cpu_op"))
            continue;
        comm = (struct comm){.id = number_of(args, "External id")};
        if (!comm.id || !read_args(args, node_gpus, &comm.row))
            continue;
        xgrow(&comms->items, comms->count, &comms->capacity, sizeof comm);
        comms->items[comms->count++] = comm;
    }
    if (comms->count)
        qsort(comms->items, comms->count, sizeof comm, compare_comms);
}

static bool find_row(const struct comms *comms, const cJSON *args,
                     uint32_t node_gpus, struct bench_row *row)
{
    struct comm key = {.id = number_of(args, "External id")};

    if (read_args(args, node_gpus, row))
        return true;
    const struct comm *found =
        comms->count ? bsearch(&key, comms->items, comms->count,
                               sizeof *comms->items, compare_comms)
                     : NULL;
    if (found)
        *row = found->row;
    return found != NULL;
}

static int read_kernel(struct bench *b, const struct comms *comms,
                       const cJSON *event, const char *source, struct err *err)
{
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
    const char *name = json_text_of(event, "name");
    struct bench_row row = {0};

    if (strcmp(json_text_of(event, "cat"), "kernel") ||
        strncmp(name, "nccl", 4))
        return 0;
    row.us = number_of(event, "dur");
    if (!bench_is_time(row.us)) {
        bench_drop(b, BENCH_NO_TIME, source, 0, name);
        return 0;
    }
    double us = row.us;
    if (!find_row(comms, args, b->node_gpus, &row)) {
        bench_drop(b, BENCH_UNKNOWN, source, 0, name);
        return 0;
    }
    row.us = us;
    bench_note(b, "%s: nodes are taken to hold %u GPUs", source,
               b->node_gpus);
    return bench_add(b, &row, err);
}

int read_kineto(struct bench *b, const struct cJSON *root, const char *source,
                struct err *err)
{
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents");
    struct comms comms = {0};
    const cJSON *event;
    int rc = 0;

    collect_operators(events, b->node_gpus, &comms);
    cJSON_ArrayForEach(event, events)
    {
        rc = read_kernel(b, &comms, event, source, err);
        if (rc)
            break;
    }
    free(comms.items);
    return rc;
}
