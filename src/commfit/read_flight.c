/* SPDX-License-Identifier: Apache-2.0
 * The names are those of torch/csrc/distributed/c10d/FlightRecorder.hpp. */
#include "commfit/read_flight.h"
#include "commfit/read_kineto.h"
#include "common/base/json_text.h"
#include "common/base/pickle.h"
#include "common/base/text_begins.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beginnings of "profiling_name" after "nccl:", letters alone. */
static const struct {
    const char *name;
    enum fit_coll coll;
} names[] = {
    {"allreduce", FIT_ALL_REDUCE},
    {"allgather", FIT_ALL_GATHER},
    {"reducescatter", FIT_REDUCE_SCATTER},
    {"broadcast", FIT_BROADCAST},
    {"reduce", FIT_REDUCE},
    {"alltoall", FIT_ALLTOALL},
    {"gather", FIT_GATHER},
    {"scatter", FIT_SCATTER},
};

static bool find_coll(const char *text, enum fit_coll *coll)
{
    char squeezed[48];
    size_t n = 0;

    if (text_begins(text, "nccl:"))
        text += 5;
    for (; *text && n + 1 < sizeof squeezed; text++)
        if (isalpha((unsigned char)*text))
            squeezed[n++] = (char)tolower((unsigned char)*text);
    squeezed[n] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_begins(squeezed, names[i].name)) {
            *coll = names[i].coll;
            return true;
        }
    return false;
}

/* Bytes of SIZES (a list of shapes) of TYPES. */
static double bytes_of(const cJSON *sizes, const cJSON *types)
{
    const cJSON *shape, *extent;
    double bytes = 0;
    int i = 0;

    cJSON_ArrayForEach(shape, sizes)
    {
        const cJSON *type = cJSON_GetArrayItem(types, i++);
        double count =
            cJSON_IsString(type) ? kineto_type_bytes(type->valuestring) : 0;

        cJSON_ArrayForEach(extent, shape)
        {
            count *= cJSON_IsNumber(extent) ? extent->valuedouble : 0;
        }
        bytes += count;
    }
    return bytes;
}

/* "[0, 1, ...]": the ranks of ENTRY's process group. */
static const char *ranks_of(const cJSON *root, const cJSON *entry)
{
    const cJSON *group =
        cJSON_GetObjectItemCaseSensitive(entry, "process_group");
    const cJSON *name = cJSON_GetArrayItem(group, 0);
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(root, "pg_config");

    return cJSON_IsString(name)
               ? json_text_of(cJSON_GetObjectItemCaseSensitive(
                                  config, name->valuestring),
                              "ranks")
               : "";
}

static uint32_t count_ranks(const char *ranks)
{
    uint32_t count = 0;

    for (bool number = false; *ranks; ranks++) {
        bool digit = isdigit((unsigned char)*ranks);

        count += digit && !number;
        number = digit;
    }
    return count;
}

static bool read_entry(const struct bench *b, const cJSON *root,
                       const cJSON *entry, struct bench_row *row)
{
    const char *ranks = ranks_of(root, entry);
    uint32_t size = count_ranks(ranks);
    double in =
        bytes_of(cJSON_GetObjectItemCaseSensitive(entry, "input_sizes"),
                 cJSON_GetObjectItemCaseSensitive(entry, "input_dtypes"));
    double out =
        bytes_of(cJSON_GetObjectItemCaseSensitive(entry, "output_sizes"),
                 cJSON_GetObjectItemCaseSensitive(entry, "output_dtypes"));
    double bytes = fmax(in, out);

    if (!find_coll(json_text_of(entry, "profiling_name"), &row->coll) ||
        size < 2 || !(bytes >= 1 && bytes < 0x1p50))
        return false;
    row->nodes = kineto_count_nodes(ranks, size, b->node_gpus);
    if (size % row->nodes)
        return false;
    row->gpus = size / row->nodes;
    row->bytes = (uint64_t)bytes;
    row->by_rank = true;
    row->in_place = row->coll == FIT_ALL_REDUCE; /* as c10d calls it */
    return true;
}

bool flight_is(const cJSON *root)
{
    return cJSON_GetObjectItemCaseSensitive(root, "entries") &&
           cJSON_GetObjectItemCaseSensitive(root, "pg_config");
}

int read_flight(struct bench *b, const cJSON *root, const char *source,
                struct err *err)
{
    const cJSON *entry;
    uint64_t untimed = 0;
    int rc = 0;

    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(root, "entries"))
    {
        const cJSON *ms =
            cJSON_GetObjectItemCaseSensitive(entry, "duration_ms");
        const char *name = json_text_of(entry, "profiling_name");
        struct bench_row row = {0};

        if (!cJSON_IsNumber(ms)) {
            untimed++;
            continue;
        }
        row.us = 1e3 * ms->valuedouble;
        if (!bench_is_time(row.us))
            bench_drop(b, BENCH_NO_TIME, source, 0, name);
        else if (!read_entry(b, root, entry, &row))
            bench_drop(b, BENCH_UNKNOWN, source, 0, name);
        else
            rc = rc ? rc : bench_add(b, &row, err);
    }
    if (untimed)
        bench_note(b,
                   "%s: %llu entries without a duration; set "
                   "TORCH_NCCL_ENABLE_TIMING=1",
                   source, (unsigned long long)untimed);
    bench_note(b, "%s: nodes are taken to hold %u GPUs", source, b->node_gpus);
    return rc;
}

/* --- pickles -------------------------------------------------------------- */

#define DEPTH_MAX 8
#define ITEMS_MAX 4000000u

static cJSON *to_json(const struct pickle_value *v, int depth, uint32_t *left);

static char *text_of(const struct pickle_value *v)
{
    return v && v->type == PICKLE_STRING ? strndup(v->text, v->text_bytes)
                                         : NULL;
}

static cJSON *list_to_json(const struct pickle_value *v, int depth,
                           uint32_t *left)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < pickle_count(v); i++)
        cJSON_AddItemToArray(array, to_json(pickle_item(v, i), depth, left));
    return array;
}

/* Stacks of calls are left out: they are most of a dump, and say nothing of
 * collectives. */
static cJSON *dict_to_json(const struct pickle_value *v, int depth,
                           uint32_t *left)
{
    cJSON *object = cJSON_CreateObject();

    for (size_t i = 0; i + 1 < pickle_count(v); i += 2) {
        char *key = text_of(pickle_item(v, i));

        if (key && strcmp(key, "frames") != 0)
            cJSON_AddItemToObject(object, key,
                                  to_json(pickle_item(v, i + 1), depth, left));
        free(key);
    }
    return object;
}

/* Values may contain themselves: what is too deep or too much becomes null. */
static cJSON *to_json(const struct pickle_value *v, int depth, uint32_t *left)
{
    if (!v || depth >= DEPTH_MAX || !*left)
        return cJSON_CreateNull();
    --*left;
    switch (v->type) {
    case PICKLE_BOOL:
        return cJSON_CreateBool(v->number != 0);
    case PICKLE_INT:
        return cJSON_CreateNumber((double)v->number);
    case PICKLE_FLOAT:
        return cJSON_CreateNumber(v->real);
    case PICKLE_STRING: {
        char *text = text_of(v);
        cJSON *string = cJSON_CreateString(text ? text : "");

        free(text);
        return string;
    }
    case PICKLE_LIST:
    case PICKLE_TUPLE:
        return list_to_json(v, depth + 1, left);
    case PICKLE_DICT:
        return dict_to_json(v, depth + 1, left);
    default:
        return cJSON_CreateNull();
    }
}

int read_flight_pickle(struct bench *b, const char *data, size_t length,
                       const char *path, const char *source, struct err *err)
{
    struct pickle *pickle = pickle_parse(data, length, path, err);
    uint32_t left = ITEMS_MAX;

    if (!pickle)
        return -1;
    cJSON *root = to_json(pickle_root(pickle), 0, &left);
    int rc = flight_is(root)
                 ? read_flight(b, root, source, err)
                 : err_set(err,
                           "%s: a pickle without \"entries\" and "
                           "\"pg_config\": not a dump of the flight recorder",
                           path);
    cJSON_Delete(root);
    pickle_free(pickle);
    return rc;
}
